//! The way into the bank: the functions of this process, or HTTP. What the bank cannot do now is asked
//! for again, under the same key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use aws_lambda_events::encodings::Body;
use aws_smithy_runtime_api::client::http::{HttpConnector as _, SharedHttpConnector};
use aws_smithy_runtime_api::http::Request;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use payments_boot::Clock;
use payments_local::{Functions, event};
use serde_json::Value;

/// How often a request is made at most while the bank does not do it.
const TRIES: u32 = 4;

/// How long a client waits before its second try; before the third, twice as long, and so on.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest a request may take: API Gateway gives up after 30 s.
const TIMEOUT: Duration = Duration::from_secs(35);

/// The way into the bank. Clones are the same way.
#[derive(Debug, Clone)]
pub struct Door {
    way: Way,
    requests: Arc<AtomicU64>,
    retries: Arc<AtomicU64>,
}

#[derive(Debug, Clone)]
enum Way {
    Functions(Box<Functions>, Clock),
    Http { connector: SharedHttpConnector, url: Arc<str>, token: Option<Arc<str>> },
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// `GET` or `POST`.
    pub method: &'a str,
    /// The path, with parameters.
    pub path: &'a str,
    /// The idempotency key; may be empty.
    pub key: &'a str,
    /// The body; may be empty.
    pub body: &'a str,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The text.
    pub text: String,
}

impl Door {
    /// The functions of this process.
    #[must_use]
    pub fn functions(functions: Functions, clock: Clock) -> Self {
        Self::by(Way::Functions(Box::new(functions), clock))
    }

    /// The HTTP API at a URL, perhaps with an access token.
    ///
    /// # Errors
    /// Where it is no URL of HTTP.
    pub fn http(url: &str, token: Option<&str>) -> Result<Self> {
        let base = url.trim_end_matches('/');
        let parsed: http::Uri = base.parse().with_context(|| not_a_url(url))?;
        if !matches!(parsed.scheme_str(), Some("http" | "https")) || parsed.query().is_some() {
            bail!(not_a_url(url));
        }
        let connector = payments_boot::connector();
        Ok(Self::by(Way::Http { connector, url: base.into(), token: token.map(Arc::from) }))
    }

    fn by(way: Way) -> Self {
        Self { way, requests: Arc::default(), retries: Arc::default() }
    }

    /// How many requests were made once more.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// What is at a path, which has to be there.
    ///
    /// # Errors
    /// Where the bank answers anything but 200.
    pub async fn get(&self, path: &str) -> Result<Value> {
        let reply = self.patiently(Ask::get(path), |reply| !reply.is_for_later()).await?;
        if reply.status != 200 {
            bail!("GET {path} was answered {}: {}{}", reply.status, reply.text, reply.what_to_do());
        }
        serde_json::from_str(&reply.text).with_context(|| format!("GET {path} was answered without JSON"))
    }

    /// The answer to a request that is made until it is `done`, but not for ever: the last answer then.
    ///
    /// # Errors
    /// Where no answer comes.
    pub async fn patiently(&self, ask: Ask<'_>, done: impl Fn(&Reply) -> bool + Send) -> Result<Reply> {
        for tried in 1..TRIES {
            match self.send(ask).await {
                Ok(reply) if done(&reply) => return Ok(reply),
                _ => {}
            }
            self.retries.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(PAUSE * tried).await;
        }
        self.send(ask).await
    }

    async fn send(&self, ask: Ask<'_>) -> Result<Reply> {
        let answered = tokio::time::timeout(TIMEOUT, async {
            match &self.way {
                Way::Functions(functions, clock) => self.invoke(functions, clock, ask).await,
                Way::Http { connector, url, token } => over_http(connector, url, token.as_deref(), ask).await,
            }
        });
        answered.await.with_context(|| format!("{} was not answered within {TIMEOUT:?}", ask.path))?
    }

    async fn invoke(&self, functions: &Functions, clock: &Clock, ask: Ask<'_>) -> Result<Reply> {
        let (parts, ()) = ask.headed(ask.path, None).body(())?.into_parts();
        let id = format!("load-{}", self.requests.fetch_add(1, Ordering::Relaxed));
        let (function, event) = event::of(&parts, ask.body.as_bytes(), &id, clock.instant())?;
        // Boxed: the chain of calls is deeper than the compiler follows in one type.
        let answer = Box::pin(functions.invoke(function, event)).await;
        let Some(Body::Text(text)) = answer.body else { bail!("{} was answered without a text", ask.path) };
        Ok(Reply { status: u16::try_from(answer.status_code)?, text })
    }
}

impl<'a> Ask<'a> {
    /// A question.
    #[must_use]
    pub fn get(path: &'a str) -> Self {
        Self { method: "GET", path, key: "", body: "" }
    }

    fn headed(self, uri: &str, token: Option<&str>) -> http::request::Builder {
        let mut request = http::Request::builder().method(self.method).uri(uri);
        if !self.body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        if !self.key.is_empty() {
            request = request.header("idempotency-key", self.key);
        }
        match token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
    }
}

impl Reply {
    /// Whether the bank could not do it now, and may another time.
    #[must_use]
    pub fn is_for_later(&self) -> bool {
        self.status >= 500 || self.status == 429
    }

    fn what_to_do(&self) -> &'static str {
        match self.status {
            401 => "; give an access token with --token or in PAYMENTS_TOKEN",
            403 => "; the token needs the scopes payments/operate, payments/write and payments/read, and no accounts",
            404 => "; give --url the API's own URL, without a path of the API",
            _ => "",
        }
    }
}

async fn over_http(connector: &SharedHttpConnector, url: &str, token: Option<&str>, ask: Ask<'_>) -> Result<Reply> {
    let request = ask.headed(&format!("{url}{}", ask.path), token).header("content-length", ask.body.len());
    let request = Request::try_from(request.body(SdkBody::from(ask.body))?)?;
    let unreachable = || format!("nothing answers at {url}; is it running, and is that its URL?");
    let answer = connector.call(request).await.with_context(unreachable)?;
    let status = answer.status().as_u16();
    let body = ByteStream::new(answer.into_body()).collect().await.with_context(unreachable)?.into_bytes();
    Ok(Reply { status, text: String::from_utf8(body.into())? })
}

fn not_a_url(url: &str) -> String {
    format!("{url} is no URL of an API; give --url one such as http://127.0.0.1:8080")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_url_is_refused() {
        for url in ["", "bank", "127.0.0.1:8080", "ftp://bank", "http://bank/?stage=1"] {
            let error = Door::http(url, None).unwrap_err();
            assert!(error.to_string().contains("give --url one such as"), "{url}: {error:#}");
        }
        Door::http("http://127.0.0.1:8080/", None).unwrap();
    }
}
