//! Access tokens: a text, a function that returns one, or the credentials of a client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, header};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::errors::{BoxError, Error, whole_seconds};
use crate::retries::Timer;
use crate::transport::Line;

/// The time before its expiry at which a token is renewed, or after half of its life if that is shorter.
const EARLY: Duration = Duration::from_secs(60);

/// The credentials of a machine's client, and the URL where its issuer gives tokens.
#[derive(Clone)]
pub struct ClientCredentials {
    /// The client's id.
    pub id: String,
    /// The client's secret.
    pub secret: String,
    /// The URL where the issuer gives tokens.
    pub token_url: String,
    /// The scopes to ask for, with spaces between them. Without, the issuer chooses.
    pub scope: Option<String>,
}

impl fmt::Debug for ClientCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, secret: _, token_url, scope } = self;
        let mut shown = f.debug_struct("ClientCredentials");
        shown.field("id", id).field("token_url", token_url).field("scope", scope).finish_non_exhaustive()
    }
}

/// The source of a request's token. The token is never shown.
#[derive(Clone)]
pub struct Token(Kind);

#[derive(Clone)]
enum Kind {
    Text(String),
    Function(Arc<dyn Fn() -> BoxFuture<'static, Result<String, BoxError>> + Send + Sync>),
    Credentials(ClientCredentials),
}

impl Token {
    /// Takes the token from a function, which is called before each attempt.
    pub fn from_fn<F, R>(function: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, BoxError>> + Send + 'static,
    {
        Self(Kind::Function(Arc::new(move || function().boxed())))
    }
}

impl From<&str> for Token {
    fn from(text: &str) -> Self {
        Self(Kind::Text(text.to_owned()))
    }
}

impl From<String> for Token {
    fn from(text: String) -> Self {
        Self(Kind::Text(text))
    }
}

impl From<ClientCredentials> for Token {
    fn from(credentials: ClientCredentials) -> Self {
        Self(Kind::Credentials(credentials))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Text(_) => f.write_str("Text"),
            Kind::Function(_) => f.write_str("Function"),
            Kind::Credentials(credentials) => credentials.fmt(f),
        }
    }
}

/// Returns the token for a request, and renews the token of a client's credentials before it expires.
#[derive(Debug)]
pub(crate) struct Source {
    token: Option<Token>,
    current: Mutex<Option<Current>>,
}

struct Current {
    text: String,
    renew_at: Duration,
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Current").field("renew_at", &self.renew_at).finish_non_exhaustive()
    }
}

impl Source {
    pub(crate) fn new(token: Option<Token>) -> Self {
        Self { token, current: Mutex::new(None) }
    }

    /// Returns the current token, or the error of an issuer that rejects the request or does not respond.
    pub(crate) async fn token(&self, line: &Line, timer: &dyn Timer) -> Result<Option<String>, Error> {
        let credentials = match self.token.as_ref().map(|token| &token.0) {
            None => return Ok(None),
            Some(Kind::Text(text)) => return Ok(Some(text.clone())),
            Some(Kind::Function(function)) => return function().await.map(Some).map_err(Error::Token),
            Some(Kind::Credentials(credentials)) => credentials,
        };
        // Locked during the call of the issuer: other requests wait for the same token.
        let mut current = self.current.lock().await;
        match current.as_ref() {
            Some(current) if timer.now() < current.renew_at => Ok(Some(current.text.clone())),
            _ => {
                let renewed = renew(credentials, line, timer).await?;
                Ok(Some(current.insert(renewed).text.clone()))
            }
        }
    }
}

async fn renew(credentials: &ClientCredentials, line: &Line, timer: &dyn Timer) -> Result<Current, Error> {
    let asked = timer.now();
    let response = line.exchange(token_request(credentials)?).await?;
    if !response.status().is_success() {
        return Err(Error::from_response(&response));
    }
    let body: Value = serde_json::from_slice(response.body()).unwrap_or_default();
    let life = body.get("expires_in").map_or(Some(Duration::ZERO), whole_seconds);
    let (Some(text), Some(life)) = (body["access_token"].as_str(), life) else {
        let detail = "The issuer's response has no access_token, or no number of seconds as expires_in.";
        return Err(Error::gateway(&response, detail.to_owned()));
    };
    Ok(Current { text: text.to_owned(), renew_at: asked.saturating_add(life - EARLY.min(life / 2)) })
}

fn token_request(credentials: &ClientCredentials) -> Result<Request<Bytes>, Error> {
    let ClientCredentials { id, secret, token_url, scope } = credentials;
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "client_credentials");
    if let Some(scope) = scope {
        form.append_pair("scope", scope);
    }
    let basic = format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
    let mut basic = HeaderValue::try_from(basic).map_err(|error| Error::Token(error.into()))?;
    basic.set_sensitive(true);
    let request = Request::post(token_url.as_str())
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::AUTHORIZATION, basic);
    request.body(form.finish().into()).map_err(|error| Error::Invalid(format!("{token_url}: {error}")))
}
