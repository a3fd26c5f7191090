//! Configuration: read once, through a lookup function, into one typed struct per function.

use std::fmt::{self, Display};
use std::str::FromStr;

use payments_store::TableNames;

/// Looks a variable up by its name. Tests bring their own, so that they never touch the process's
/// environment.
pub struct Lookup<'a>(&'a dyn Fn(&str) -> Option<String>);

/// A variable that is missing or does not do.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It is not set, or empty.
    #[error("the environment variable {0} is not set; set it to {1}")]
    Missing(&'static str, &'static str),
    /// It is set to something else than it should be.
    #[error("the environment variable {0} is {1:?}: {2}")]
    Invalid(&'static str, String, String),
}

/// As text: what a function's `main` returns is shown by `Debug`, and a person has to read it.
impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl<'a> Lookup<'a> {
    /// A lookup through any function.
    #[must_use]
    pub fn new(lookup: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self(lookup)
    }

    /// The value of a variable, if it is set and not empty.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    /// A variable that has to be there; `wants` says what it is.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn required<T: FromStr<Err: Display>>(
        &self,
        name: &'static str,
        wants: &'static str,
    ) -> Result<T, ConfigError> {
        self.optional(name)?.ok_or(ConfigError::Missing(name, wants))
    }

    /// A variable that may be there.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`].
    pub fn optional<T: FromStr<Err: Display>>(&self, name: &'static str) -> Result<Option<T>, ConfigError> {
        let parse = |text: String| text.parse().map_err(|e: T::Err| ConfigError::Invalid(name, text, e.to_string()));
        self.text(name).map(parse).transpose()
    }
}

impl Lookup<'static> {
    /// A lookup in the process's environment.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is where configuration comes from")]
    pub fn environment() -> Self {
        Self(&|name| std::env::var(name).ok())
    }
}

/// Where the data is: what every function with a store needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataConfig {
    /// `PAYMENTS_TABLE` and `HISTORY_TABLE`.
    pub tables: TableNames,
    /// `DYNAMODB_ENDPOINT`: another engine than AWS's own, for one machine and tests.
    pub endpoint: Option<String>,
}

impl DataConfig {
    /// Reads it.
    ///
    /// # Errors
    /// [`ConfigError`], which names the variable.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        let tables = TableNames {
            payments: lookup.required("PAYMENTS_TABLE", "the name of the hot table")?,
            history: lookup.required("HISTORY_TABLE", "the name of the long-term table")?,
        };
        Ok(Self { tables, endpoint: lookup.text("DYNAMODB_ENDPOINT") })
    }
}

/// Who is let in: what every function of the HTTP API needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessConfig {
    /// `ACCOUNT_CLAIM`: the claim of a token that names the accounts it is for.
    pub account_claim: String,
    /// Whether this is `sam local`, which has no JWT authorizers, so that requests come without a
    /// token's claims.
    ///
    /// A stack that is deployed cannot be made to look like it. `AWS_SAM_LOCAL` is set by `sam local`
    /// alone, and a test keeps it out of the template; but whoever may configure a function could set it.
    /// So the log stream has to agree: `sam local` names it `$LATEST` (aws-sam-cli 1.170,
    /// `samcli/local/lambdafn/env_vars.py`), where Lambda names it by date, version and sandbox
    /// (`2026/11/20/[$LATEST]…`) and, the variable being a reserved one, lets nobody say otherwise. Should
    /// a later `sam local` name it otherwise, requests there are refused, which harms nobody.
    pub is_sam_local: bool,
}

impl AccessConfig {
    /// Reads it.
    ///
    /// # Errors
    /// [`ConfigError`], which names the variable.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        let is = |name: &str, value: &str| lookup.text(name).is_some_and(|text| text == value);
        Ok(Self {
            // Without a default: a forgotten variable would make a machine of every customer's token.
            account_claim: lookup.required("ACCOUNT_CLAIM", "the claim that names a token's accounts")?,
            is_sam_local: is("AWS_SAM_LOCAL", "true") && is("AWS_LAMBDA_LOG_STREAM_NAME", "$LATEST"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sam_local_is_sam_local() {
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
                "ACCOUNT_CLAIM" => Some("accounts".to_owned()),
                "AWS_SAM_LOCAL" => sam_local.map(str::to_owned),
                "AWS_LAMBDA_LOG_STREAM_NAME" => log_stream.map(str::to_owned),
                _ => None,
            };
            let read = AccessConfig::read(&Lookup::new(&set)).unwrap();
            assert_eq!(read.is_sam_local, want, "{sam_local:?} {log_stream:?}");
        }
        assert!(AccessConfig::read(&Lookup::new(&|_| None)).is_err(), "which claim names the accounts has to be said");
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
        let missing = DataConfig::read(&lookup).unwrap_err().to_string();
        assert_eq!(
            missing,
            "the environment variable HISTORY_TABLE is not set; set it to the name of the long-term table"
        );
        let invalid = lookup.optional::<u32>("HORIZON_DAYS").unwrap_err().to_string();
        assert_eq!(invalid, "the environment variable HORIZON_DAYS is \"many\": invalid digit found in string");
        assert_eq!(lookup.optional::<u32>("NONE"), Ok(None));
    }
}
