//! Configuration: read once, through a lookup function, into one typed struct per function.

use std::fmt::{self, Display};
use std::str::FromStr;

use chrono::TimeDelta;
use payments_model::business_days::{CurrencyCalendars, CutOffs};
use payments_model::{BusinessDays, BusinessZone, DateRule, ShardCount};
use payments_store::TableNames;

/// The default of `HORIZON_DAYS`: two years.
const DEFAULT_HORIZON_DAYS: u32 = 731;

/// The default of `MAX_DISPATCH_ATTEMPTS`. The waits double from one hour: the eighth attempt comes after 127 hours
/// (5 days), and the payment is stuck after 255 hours (11 days).
const DEFAULT_MAX_ATTEMPTS: u32 = 8;

/// The default of `CUT_OFF_LEAD_MINUTES`: two ticks of the sweep.
const DEFAULT_LEAD_MINUTES: u32 = 10;

/// The value of `MACHINE_CLIENTS` that names nobody.
const NO_CLIENTS: &str = "none";

/// Looks up environment variables. Tests pass their own function instead of changing the process's environment.
pub struct Lookup<'a>(&'a dyn Fn(&str) -> Option<String>);

/// A variable that is missing or invalid.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The variable is not set, or empty.
    #[error("the environment variable {0} is not set; set it to {1}")]
    Missing(&'static str, &'static str),
    /// The variable has an invalid value.
    #[error("the environment variable {0} is {1:?}: {2}")]
    Invalid(&'static str, String, String),
}

/// The same text as `Display`: Rust prints an error that `main` returns with `Debug`.
impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl<'a> Lookup<'a> {
    /// Creates a lookup through any function.
    pub fn new(lookup: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self(lookup)
    }

    /// The value of a variable; `None` if it is unset or empty.
    pub fn text(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    /// Reads a required variable; `wants` tells the operator what to set it to.
    ///
    /// # Errors
    /// [`ConfigError`] if it is missing or invalid.
    pub fn required<T: FromStr<Err: Display>>(
        &self,
        name: &'static str,
        wants: &'static str,
    ) -> Result<T, ConfigError> {
        self.optional(name)?.ok_or(ConfigError::Missing(name, wants))
    }

    /// Reads an optional variable.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`].
    pub fn optional<T: FromStr<Err: Display>>(&self, name: &'static str) -> Result<Option<T>, ConfigError> {
        let parse = |text: String| text.parse().map_err(|e: T::Err| ConfigError::Invalid(name, text, e.to_string()));
        self.text(name).map(parse).transpose()
    }

    /// Reads an optional whole number.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`].
    pub fn number(&self, name: &'static str, default: u32) -> Result<u32, ConfigError> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.parse().map_err(|_| {
            let why = format!("it has to be a whole number, such as {default}");
            ConfigError::Invalid(name, text, why)
        })
    }

    /// Reads `PAYMENTS_TABLE`, `HISTORY_TABLE`, `LOG_TABLE` and `DYNAMODB_ENDPOINT`.
    pub fn data(&self) -> Result<DataConfig, ConfigError> {
        let tables = TableNames {
            payments: self.required("PAYMENTS_TABLE", "the name of the hot table")?,
            history: self.required("HISTORY_TABLE", "the name of the long-term table")?,
            log: self.required("LOG_TABLE", "the name of the log's table")?,
        };
        Ok(DataConfig { tables, endpoint: self.text("DYNAMODB_ENDPOINT") })
    }

    /// Reads `BUSINESS_TIME_ZONE`.
    pub fn zone(&self) -> Result<BusinessZone, ConfigError> {
        self.required("BUSINESS_TIME_ZONE", "the bank's time zone, such as Europe/London")
    }

    /// Reads `HORIZON_DAYS`: the number of days ahead on which a payment may be due.
    pub fn horizon_days(&self) -> Result<u32, ConfigError> {
        self.number("HORIZON_DAYS", DEFAULT_HORIZON_DAYS)
    }

    /// Reads `CALENDARS`: the calendars of currencies; empty if it is not set.
    pub fn calendars(&self) -> Result<CurrencyCalendars, ConfigError> {
        Ok(self.optional("CALENDARS")?.unwrap_or_default())
    }

    /// Reads the bank's business days: `CALENDARS`, `CUT_OFFS`, `CUT_OFF_LEAD_MINUTES` and
    /// `DATE_RULE`. Without calendars every day is open.
    pub fn business_days(&self) -> Result<BusinessDays, ConfigError> {
        let cut_offs: CutOffs = self.optional("CUT_OFFS")?.unwrap_or_default();
        let lead = TimeDelta::minutes(self.number("CUT_OFF_LEAD_MINUTES", DEFAULT_LEAD_MINUTES)?.into());
        let rule = self.optional("DATE_RULE")?.unwrap_or(DateRule::None);
        let days = BusinessDays::new(self.zone()?, self.calendars()?, cut_offs, rule, lead);
        let text = || self.text("CUT_OFFS").unwrap_or_default();
        days.map_err(|error| ConfigError::Invalid("CUT_OFFS", text(), error.to_string()))
    }

    /// Reads `READ_SHARDS`: the number of shards that readers look at.
    pub fn read_shards(&self) -> Result<ShardCount, ConfigError> {
        self.required("READ_SHARDS", "the number of shards to read, at least WRITE_SHARDS")
    }

    /// Reads `MAX_DISPATCH_ATTEMPTS`: the dispatch attempts of a payment before an operator has to act.
    pub fn max_attempts(&self) -> Result<u32, ConfigError> {
        self.number("MAX_DISPATCH_ATTEMPTS", DEFAULT_MAX_ATTEMPTS)
    }

    /// Reads `WEBHOOK_SECRET`: the place of the master secret of webhooks.
    pub fn webhook_secret(&self) -> Result<String, ConfigError> {
        self.required("WEBHOOK_SECRET", "the id of the master secret of webhooks in Secrets Manager, or given:SECRET")
    }

    /// Reads `ACCOUNT_CLAIM`: the claim that names a token's accounts. It has no default: under another
    /// name, the accounts of customers would not be found.
    pub fn account_claim(&self) -> Result<String, ConfigError> {
        self.required("ACCOUNT_CLAIM", "the claim that names a token's accounts")
    }

    /// Reads `MACHINE_CLIENTS`: the clients whose tokens pass without the account claim, separated by commas. `none`
    /// names no client. The variable has no default: if it were forgotten, every machine would be rejected.
    pub fn machine_clients(&self) -> Result<Vec<String>, ConfigError> {
        let clients: String = self.required("MACHINE_CLIENTS", "the clients that name no accounts, or none")?;
        let named = clients.split(',').filter(|client| !client.is_empty() && *client != NO_CLIENTS);
        Ok(named.map(str::to_owned).collect())
    }

    /// Reads `REFUSED_CLIENTS`: the clients whose creates and amendments the bank refuses, separated by commas; `*` is all.
    pub fn refused_clients(&self) -> Vec<String> {
        self.text("REFUSED_CLIENTS").unwrap_or_default().split(',').map(str::to_owned).collect()
    }

    /// Whether this is `sam local`, which has no JWT authorizers, so that requests arrive without claims.
    ///
    /// A deployed function never looks like it. Only `sam local` sets `AWS_SAM_LOCAL`, and a test keeps it out of
    /// the template. Someone who may configure a function could still set it, so the log stream has to agree:
    /// `sam local` names it `$LATEST` (aws-sam-cli 1.170, `samcli/local/lambdafn/env_vars.py`). Lambda names it by
    /// date, version and sandbox (`2026/11/20/[$LATEST]…`), and reserves the variable, so nobody can change it.
    /// If a later `sam local` changes the name, its requests are rejected.
    pub fn is_sam_local(&self) -> bool {
        let is = |name: &str, value: &str| self.text(name).is_some_and(|text| text == value);
        is("AWS_SAM_LOCAL", "true") && is("AWS_LAMBDA_LOG_STREAM_NAME", "$LATEST")
    }
}

impl Lookup<'static> {
    /// Creates a lookup in the process's environment.
    #[expect(clippy::disallowed_methods, reason = "the one reader of the process's environment")]
    pub fn environment() -> Self {
        Self(&|name| std::env::var(name).ok())
    }
}

/// The tables, and the engine that has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataConfig {
    /// The names of the tables.
    pub tables: TableNames,
    /// The engine's URL, if it is not AWS's: for one machine and tests.
    pub endpoint: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sam_local_looks_like_sam_local() {
        let of_lambda = "2026/11/20/[$LATEST]8f4c2a30d5e14b7c9f0e6d1b2a3c4d5e";
        for (sam_local, log_stream, want) in [
            (Some("true"), Some("$LATEST"), true),
            (Some("true"), Some(of_lambda), false),
            (Some("true"), None, false),
            (Some("TRUE"), Some("$LATEST"), false),
            (Some("false"), Some("$LATEST"), false),
            (Some(""), Some("$LATEST"), false),
            (None, Some("$LATEST"), false),
            (None, Some(of_lambda), false),
            (None, None, false),
        ] {
            let set = |name: &str| match name {
                "AWS_SAM_LOCAL" => sam_local.map(str::to_owned),
                "AWS_LAMBDA_LOG_STREAM_NAME" => log_stream.map(str::to_owned),
                _ => None,
            };
            assert_eq!(Lookup::new(&set).is_sam_local(), want, "{sam_local:?} {log_stream:?}");
        }
    }

    #[test]
    fn the_account_claim_has_no_default() {
        assert!(Lookup::new(&|_| None).account_claim().is_err());
    }

    #[test]
    fn machine_clients_are_named_or_none() {
        for (text, want) in [
            (None, None),
            (Some(""), None),
            (Some("none"), Some(vec![])),
            (Some("none,,"), Some(vec![])),
            (Some(",,"), Some(vec![])),
            (Some("feed"), Some(vec!["feed"])),
            // The template adds the console's clients, which may be empty.
            (Some("feed,erp,console,"), Some(vec!["feed", "erp", "console"])),
            (Some("none,console,act"), Some(vec!["console", "act"])),
        ] {
            let set = |name: &str| text.filter(|_| name == "MACHINE_CLIENTS").map(str::to_owned);
            let read = Lookup::new(&set).machine_clients().ok();
            assert_eq!(read, want.map(|names| names.into_iter().map(str::to_owned).collect()), "{text:?}");
        }
    }

    #[test]
    fn business_days_are_checked_at_the_start() {
        let read = |calendars: &'static str, cut_offs: &'static str, lead: &'static str, rule: &'static str| {
            let set = move |name: &str| match name {
                "BUSINESS_TIME_ZONE" => Some("Pacific/Honolulu".to_owned()),
                "CALENDARS" => Some(calendars.to_owned()),
                "CUT_OFFS" => Some(cut_offs.to_owned()),
                "CUT_OFF_LEAD_MINUTES" => Some(lead.to_owned()),
                "DATE_RULE" => Some(rule.to_owned()),
                _ => None,
            };
            Lookup::new(&set).business_days().map_err(|error| error.to_string())
        };
        assert!(read("", "", "", "").unwrap().is_always_open());
        // An operator who empties the calendars, and leaves the cut-offs, has switched all off.
        assert!(read("", "T2=16:00", "", "following").unwrap().is_always_open());
        assert_eq!(read("EUR=T2", "T2=16:00", "", "following").map(|days| days.rule()), Ok(DateRule::Following));
        for (calendars, cut_offs, lead, rule, want) in [
            (
                "EUR=T3",
                "",
                "",
                "",
                "CALENDARS is \"EUR=T3\": there is no calendar \"T3\"; the calendars are FED, GB, T2",
            ),
            (
                "EUR=T2",
                "T2=3:00",
                "",
                "",
                "CUT_OFFS is \"T2=3:00\": \"3:00\" is not a time as hh:mm, from 04:00 to 23:59",
            ),
            (
                "EUR=T2",
                "T2=11:05",
                "10",
                "",
                "CUT_OFFS is \"T2=11:05\": on 2026-01-02 the cut-off of T2 comes before the bank's day begins, or within \
                 the lead time; choose a later one",
            ),
            ("", "", "soon", "", "CUT_OFF_LEAD_MINUTES is \"soon\": it has to be a whole number, such as 10"),
            ("", "", "", "next", "DATE_RULE is \"next\": a date rule is none, following, preceding or refuse"),
        ] {
            let error = read(calendars, cut_offs, lead, rule).expect_err(want);
            assert_eq!(error, format!("the environment variable {want}"));
        }
    }

    #[test]
    fn errors_name_the_variable_and_what_it_wants() {
        let set = |name: &str| match name {
            "PAYMENTS_TABLE" => Some("payments".to_owned()),
            "HISTORY_TABLE" => Some(String::new()),
            "HORIZON_DAYS" => Some("many".to_owned()),
            _ => None,
        };
        let lookup = Lookup::new(&set);
        let missing = lookup.data().unwrap_err().to_string();
        assert_eq!(
            missing,
            "the environment variable HISTORY_TABLE is not set; set it to the name of the long-term table"
        );
        let invalid = lookup.number("HORIZON_DAYS", 731).unwrap_err().to_string();
        let want = "the environment variable HORIZON_DAYS is \"many\": it has to be a whole number, such as 731";
        assert_eq!(invalid, want);
        assert_eq!(lookup.number("NONE", 731), Ok(731));
        assert_eq!(lookup.optional::<u32>("NONE"), Ok(None));
    }
}
