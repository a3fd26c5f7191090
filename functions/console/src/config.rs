//! Configuration of `console`.

use std::fmt;
use std::str::FromStr;

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_http::Access;
use payments_model::{BusinessZone, ShardCount};

/// The configuration of `console`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The tables.
    pub data: DataConfig,
    /// The access rules.
    pub access: Access,
    /// The bank's time zone.
    pub zone: BusinessZone,
    /// The number of shards to read.
    pub read_shards: ShardCount,
    /// `CONSOLE`: whether the bank has a console. Without it, each of its routes is unknown.
    pub is_on: bool,
    /// How operators sign in. Without it, the browser sends no token: on one machine only, because elsewhere every view needs
    /// one.
    pub sign_in: Option<SignIn>,
    /// What is paused, as the parameter `Paused` says.
    pub paused: Paused,
}

/// How operators sign in: the bank's OpenID provider, with PKCE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    /// The public client of the console.
    pub client_id: String,
    /// Where the browser asks for a code.
    pub authorize_url: ProviderUrl,
    /// Where it changes the code for a token.
    pub token_url: ProviderUrl,
}

/// An address of the OpenID provider. Its characters are those of a plain URL, so it fits into a header and an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderUrl(String);

/// Why a text is no address of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it has to be an https URL without a query, such as https://login.example.com/oauth2/token")]
pub struct ProviderUrlError;

/// What the parameter `Paused` pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paused {
    /// Nothing.
    None,
    /// Dispatch and the schedules.
    Sending,
    /// The same, and settlement results.
    Settling,
}

impl Config {
    /// Reads the configuration. An error names the variable.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        let access = Access { account_claim: lookup.account_claim()?, is_open: lookup.is_sam_local() };
        let paused = lookup.optional("PAUSED")?.unwrap_or(Paused::None);
        let (data, zone, read_shards) = (lookup.data()?, lookup.zone()?, lookup.read_shards()?);
        let is_on = lookup.optional("CONSOLE")?.unwrap_or(false);
        Ok(Self { is_on, data, access, zone, read_shards, sign_in: SignIn::read(lookup)?, paused })
    }
}

impl SignIn {
    /// Reads `CONSOLE_CLIENT_ID`, `CONSOLE_AUTHORIZE_URL` and `CONSOLE_TOKEN_URL`: all three, or none.
    fn read(lookup: &Lookup<'_>) -> Result<Option<Self>, ConfigError> {
        let Some(client_id) = lookup.text("CONSOLE_CLIENT_ID") else { return Ok(None) };
        let authorize_url = lookup.required("CONSOLE_AUTHORIZE_URL", "where the OpenID provider issues codes")?;
        let token_url = lookup.required("CONSOLE_TOKEN_URL", "where the OpenID provider issues tokens")?;
        Ok(Some(Self { client_id, authorize_url, token_url }))
    }
}

impl FromStr for ProviderUrl {
    type Err = ProviderUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rest = text.strip_prefix("https://").or_else(|| {
            // The provider of `cargo local`.
            text.strip_prefix("http://").filter(|rest| rest.starts_with("127.0.0.1:") || rest.starts_with("localhost:"))
        });
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:".contains(&byte);
        match rest {
            Some(rest) if !rest.is_empty() && !rest.starts_with('/') && rest.bytes().all(plain) => {
                Ok(Self(text.to_owned()))
            }
            _ => Err(ProviderUrlError),
        }
    }
}

impl ProviderUrl {
    /// The address without its path, as a content security policy names it.
    pub(crate) fn origin(&self) -> &str {
        let host = self.0.find("://").map_or(0, |scheme| scheme + 3);
        self.0[host..].find('/').map_or(self.0.as_str(), |path| &self.0[..host + path])
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
    fn a_provider_is_reached_by_https_alone() {
        for (text, origin) in [
            ("https://login.example.com/oauth2/token", Some("https://login.example.com")),
            ("https://login.example.com:8443/token", Some("https://login.example.com:8443")),
            ("https://login.example.com", Some("https://login.example.com")),
            ("http://127.0.0.1:3000/oauth2/token", Some("http://127.0.0.1:3000")),
            ("http://login.example.com/token", None),
            ("http://127.0.0.1.example.com/token", None),
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
