//! Access tokens for `cargo local --require-tokens`: an issuer, and the checks of API Gateway's JWT authorizer.
//!
//! The issuer creates its key when it starts. Source of the checks: API Gateway Developer Guide, "Control access to HTTP
//! APIs with JWT authorizers". `kid`, `iss`, `aud` (or without one `client_id`), `exp`, `nbf` and `iat` are checked. There
//! signatures are RSA's. Here issuer and gateway are one process and share a secret, so HMAC-SHA256 is enough, and the
//! first build needs no library for RSA keys.

use std::fmt;

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit as _, Mac as _};
use payments_http::Scope;
use payments_machine::environment::{AUDIENCE, CONSOLE_CLIENT};
use serde_json::{Value, json};
use sha2::Sha256;

/// The `iss` of the tokens.
pub const ISSUER: &str = "http://localhost/payments";

/// The audiences of a token: API Gateway takes several, too.
const AUDIENCES: [&str; 2] = [AUDIENCE, CONSOLE_CLIENT];

/// The id of the key.
const KEY_ID: &str = "local";

/// The lifetime of a token, in seconds: twelve hours.
const LIFETIME: i64 = 12 * 60 * 60;

/// The lifetime of a token of the console, in seconds: an hour, as on Amazon Cognito.
pub(crate) const CONSOLE_LIFETIME: i64 = 60 * 60;

/// The claims of a token.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    /// The client that uses it.
    pub(crate) client: &'static str,
    /// The person or program that it names.
    pub(crate) subject: &'static str,
    /// Its scopes, separated by spaces.
    pub(crate) scopes: String,
    /// The accounts of a customer; empty for others.
    pub(crate) accounts: Vec<String>,
    /// Its lifetime, in seconds.
    pub(crate) lifetime: i64,
}

/// An issuer of access tokens, which also checks them.
pub struct Issuer {
    signer: Hmac<Sha256>,
    account_claim: String,
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Issuer({})", self.account_claim)
    }
}

impl Issuer {
    /// Creates an issuer with a new key, whose tokens name their accounts in this claim.
    pub fn new(account_claim: &str) -> Result<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Self { signer: Hmac::new_from_slice(&secret)?, account_claim: account_claim.to_owned() })
    }

    /// Returns the claims of a token that is valid from now on. With accounts it is a customer's, otherwise a machine's.
    pub fn claims(&self, scopes: &str, accounts: &[String], now: DateTime<Utc>) -> Value {
        let (scopes, accounts) = (scopes.to_owned(), accounts.to_vec());
        self.claims_of(&Grant { client: AUDIENCE, subject: AUDIENCE, scopes, accounts, lifetime: LIFETIME }, now)
    }

    fn claims_of(&self, grant: &Grant, now: DateTime<Utc>) -> Value {
        let now = now.timestamp();
        let mut claims = json!({
            "iss": ISSUER, "client_id": grant.client, "sub": grant.subject, "scope": grant.scopes,
            "iat": now, "exp": now + grant.lifetime, "token_use": "access",
        });
        if !grant.accounts.is_empty() {
            claims[self.account_claim.as_str()] = json!(grant.accounts);
        }
        claims
    }

    /// Returns a token with these claims.
    pub fn sign(&self, claims: &Value) -> Result<String> {
        let header = json!({ "alg": "HS256", "kid": KEY_ID, "typ": "JWT" });
        let [header, claims] = [&header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        let signature = self.signer.clone().chain_update(&signed).finalize().into_bytes();
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// Returns the claims of the token in an `Authorization` header, if this issuer signed it and it is valid now.
    pub fn accept(&self, authorization: &str, now: DateTime<Utc>) -> Option<Value> {
        let token = authorization.strip_prefix("Bearer ").unwrap_or(authorization);
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header = decoded(header)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let is_ours = header["alg"] == "HS256" && header["kid"] == KEY_ID;
        if !is_ours || self.signer.clone().chain_update(signed).verify_slice(&signature).is_err() {
            return None;
        }
        decoded(claims).filter(|claims| is_valid(claims, now.timestamp()))
    }

    /// Answers a request for a token as an OAuth 2.0 token endpoint does. The form has `grant_type=client_credentials` and
    /// may have a `scope`; without it the token has every scope. The token is a customer's if there are fields `account`.
    pub fn answer(&self, form: &[u8], now: DateTime<Utc>) -> Result<String> {
        let fields: Vec<(String, String)> = form_urlencoded::parse(form).into_owned().collect();
        let all =
            |name: &'static str| fields.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.clone());
        ensure!(all("grant_type").eq(["client_credentials"]), "grant_type must be client_credentials");
        let scope = all("scope").next().unwrap_or_else(|| Scope::ALL.map(Scope::as_str).join(" "));
        let accounts: Vec<String> = all("account").collect();
        let token = self.sign(&self.claims(&scope, &accounts, now))?;
        Ok(json!({ "access_token": token, "expires_in": LIFETIME, "token_type": "Bearer" }).to_string())
    }

    /// Returns what a token endpoint answers with the token of a grant.
    pub(crate) fn answer_with(&self, grant: &Grant, now: DateTime<Utc>) -> Result<String> {
        let token = self.sign(&self.claims_of(grant, now))?;
        // The scopes can be fewer than the client asked for, so they are named (RFC 6749, section 5.1).
        let (lifetime, scopes) = (grant.lifetime, &grant.scopes);
        let answer = json!({ "access_token": token, "expires_in": lifetime, "token_type": "Bearer", "scope": scopes });
        Ok(answer.to_string())
    }
}

fn decoded(part: &str) -> Option<Value> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

/// Whether claims are valid, apart from their signature.
fn is_valid(claims: &Value, now: i64) -> bool {
    let (audience, client) = (&claims["aud"], &claims["client_id"]);
    let is_ours = |name: &Value| AUDIENCES.iter().any(|audience| name == audience);
    let is_audience = match audience {
        Value::Null => is_ours(client),
        Value::Array(several) => several.iter().any(is_ours),
        one => is_ours(one),
    };
    let has_begun = |name: &str| claims[name].is_null() || claims[name].as_i64().is_some_and(|time| time <= now);
    let has_expired = claims["exp"].as_i64().is_none_or(|end| end <= now);
    is_audience && claims["iss"] == ISSUER && has_begun("nbf") && has_begun("iat") && !has_expired
}
