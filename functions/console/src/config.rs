//! Configuration of `console`.

use std::fmt;
use std::str::FromStr;

use chrono::TimeDelta;
use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_files::Storage;
use payments_http::Access;
use payments_model::business_days::CutOffs;
use payments_model::second::PersonClaim;
use payments_model::{BusinessDays, DateRule, DayLimit, ShardCount};

use crate::resources::Resources;

/// The configuration of `console`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The tables.
    pub data: DataConfig,
    /// The access rules.
    pub access: Access,
    /// The bank's time zone and its calendars.
    pub business_days: BusinessDays,
    /// The number of shards to read.
    pub read_shards: ShardCount,
    /// The dispatch attempts of a payment before an operator has to act.
    pub max_attempts: u32,
    /// `CONSOLE`: whether the bank has a console. Without it, each of its routes is unknown.
    pub is_on: bool,
    /// The sign-in of operators. Without it, the browser sends no token: on one machine only,
    /// because elsewhere every view needs one.
    pub sign_in: Option<SignIn>,
    /// `PERSON_CLAIM`: the claim that names the token's person. Without it nobody approves, or asks for an approval.
    pub person_claim: Option<PersonClaim>,
    /// `MAX_DAY`: the limit of each due date, if there is one.
    pub max_day: Option<DayLimit>,
    /// The paused parts of the bank, from the parameter `Paused`.
    pub paused: Paused,
    /// The functions, queues and storage that operators reach besides the tables.
    pub resources: Resources,
    /// `SEALED_URL`: the storage of sealed parts.
    pub sealed: Storage,
}

/// The sign-in of operators: the bank's OpenID provider, with PKCE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    /// The public client of operators who only look.
    pub client_id: String,
    /// The public client of operators who also act. Without it, nobody acts through the console.
    pub operate_client_id: Option<String>,
    /// The address at which the browser asks for a code.
    pub authorize_url: ProviderUrl,
    /// The address at which the browser exchanges the code for a token.
    pub token_url: ProviderUrl,
}

/// An address of the OpenID provider: an https URL, or a path, which the console's own host serves.
/// Its characters are those of a plain URL, so it fits into a header and an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderUrl(String);

/// An invalid address of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it has to be an https URL without a query, such as https://login.example.com/oauth2/token, or a path on the console's host"
)]
pub struct ProviderUrlError;

/// The values of the parameter `Paused`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paused {
    /// Nothing.
    None,
    /// Dispatch and the schedules.
    Sending,
    /// Dispatch, the schedules, and settlement results.
    Settling,
}

impl Config {
    /// Reads the configuration. An error names the variable.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            data: lookup.data()?,
            access: Access {
                account_claim: lookup.account_claim()?,
                machine_clients: lookup.machine_clients()?,
                is_open: lookup.is_sam_local(),
            },
            business_days: business_days(lookup)?,
            read_shards: lookup.read_shards()?,
            max_attempts: lookup.max_attempts()?,
            is_on: lookup.optional("CONSOLE")?.unwrap_or(false),
            sign_in: SignIn::read(lookup)?,
            person_claim: lookup.optional("PERSON_CLAIM")?,
            max_day: lookup.optional("MAX_DAY")?,
            paused: lookup.optional("PAUSED")?.unwrap_or(Paused::None),
            resources: Resources::read(lookup)?,
            sealed: lookup.required("SEALED_URL", "where sealed parts are stored, such as s3://bucket")?,
        })
    }
}

/// The bank's dates and calendars. No payment's date is decided here, so cut-offs and the default rule are not read.
fn business_days(lookup: &Lookup<'_>) -> Result<BusinessDays, ConfigError> {
    let calendars = lookup.calendars()?;
    let days = BusinessDays::new(lookup.zone()?, calendars, CutOffs::default(), DateRule::None, TimeDelta::zero());
    days.map_err(|error| {
        ConfigError::Invalid("CALENDARS", lookup.text("CALENDARS").unwrap_or_default(), error.to_string())
    })
}

impl SignIn {
    /// Reads `CONSOLE_CLIENT_ID`, `CONSOLE_AUTHORIZE_URL` and `CONSOLE_TOKEN_URL`: all three, or none. `CONSOLE_OPERATE_CLIENT_ID` is optional.
    fn read(lookup: &Lookup<'_>) -> Result<Option<Self>, ConfigError> {
        let (authorize, token) = ("CONSOLE_AUTHORIZE_URL", "CONSOLE_TOKEN_URL");
        let (authorize_url, token_url) = (lookup.optional(authorize)?, lookup.optional(token)?);
        let operate_client_id = lookup.text("CONSOLE_OPERATE_CLIENT_ID");
        let Some(client_id) = lookup.text("CONSOLE_CLIENT_ID") else { return Ok(None) };
        let missing = |name| ConfigError::Missing(name, "an address of the OpenID provider");
        let authorize_url = authorize_url.ok_or_else(|| missing(authorize))?;
        let token_url = token_url.ok_or_else(|| missing(token))?;
        Ok(Some(Self { client_id, operate_client_id, authorize_url, token_url }))
    }
}

impl FromStr for ProviderUrl {
    type Err = ProviderUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:".contains(&byte);
        // A second slash would begin the name of another host.
        let after = text.strip_prefix("https://").or_else(|| text.strip_prefix('/'));
        let is_one = |after: &str| text == "/" || !(after.is_empty() || after.starts_with('/'));
        if text.bytes().all(plain) && after.is_some_and(is_one) {
            return Ok(Self(text.to_owned()));
        }
        Err(ProviderUrlError)
    }
}

impl ProviderUrl {
    /// The address without its path, as a content security policy names it: empty if it is on the console's own host.
    pub(crate) fn origin(&self) -> &str {
        let Some(host) = self.0.strip_prefix("https://") else { return "" };
        host.find('/').map_or(self.0.as_str(), |path| &self.0[..self.0.len() - host.len() + path])
    }
}

impl fmt::Display for ProviderUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Paused {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Self::None),
            "sending" => Ok(Self::Sending),
            "settling" => Ok(Self::Settling),
            _ => Err("it has to be none, sending or settling"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_reached_by_https_or_on_the_same_host() {
        for (text, origin) in [
            ("https://login.example.com/oauth2/token", Some("https://login.example.com")),
            ("https://login.example.com:8443/token", Some("https://login.example.com:8443")),
            ("https://login.example.com", Some("https://login.example.com")),
            ("/oauth2/token", Some("")),
            ("/", Some("")),
            ("/a://b/c", Some("")),
            ("http://login.example.com/token", None),
            ("http://127.0.0.1:3000/token", None),
            ("//login.example.com/token", None),
            ("/\\login.example.com/token", None),
            ("/token?a=b", None),
            ("/token; script-src *", None),
            ("oauth2/token", None),
            ("https://login.example.com/token?a=b", None),
            ("https://login.example.com; script-src *", None),
            ("https://user@login.example.com/", None),
            ("https:///token", None),
            ("https://", None),
            ("javascript:alert(1)", None),
            ("", None),
        ] {
            let url = text.parse::<ProviderUrl>().ok();
            assert_eq!(url.as_ref().map(ProviderUrl::origin), origin, "{text}");
        }
    }
}
