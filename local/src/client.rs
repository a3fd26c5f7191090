//! A client of the API: it asks the functions of this process, or an API over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use aws_lambda_events::encodings::Body;
use aws_smithy_runtime_api::client::http::{HttpConnector as _, SharedHttpConnector};
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use chrono::{DateTime, Utc};
use http::Method;
use payments_boot::Clock;
use payments_http::HttpFunction;
use serde_json::Value;

use crate::event;
use crate::functions::Functions;

/// How often a request is sent at most.
const TRIES: u32 = 5;

/// The pause before the second try; each one after it is longer by as much.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest that one try may take. API Gateway gives up after 30 s.
const TIMEOUT: Duration = Duration::from_secs(35);

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    method: Method,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The headers, in order of their names.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub text: String,
}

/// A client. Clones count together.
#[derive(Debug, Clone)]
pub struct Client {
    target: Target,
    requests: Arc<AtomicU64>,
    retries: Arc<AtomicU64>,
}

#[derive(Debug, Clone)]
enum Target {
    Functions(Box<Functions>, Clock),
    Http { connector: SharedHttpConnector, url: Arc<str>, token: Option<Arc<str>> },
}

impl Request {
    /// Creates a request without a body.
    pub fn new(method: Method, path: &str) -> Self {
        Self { method, path: path.to_owned(), headers: Vec::new(), body: String::new() }
    }

    /// Creates a GET.
    pub fn get(path: &str) -> Self {
        Self::new(Method::GET, path)
    }

    /// Creates a POST without a body.
    pub fn post(path: &str) -> Self {
        Self::new(Method::POST, path)
    }

    /// Creates the request for a payment of `account` under an idempotency key.
    pub fn create(account: &str, key: &str, body: &Value) -> Self {
        Self::post(&format!("/accounts/{account}/payments")).header("Idempotency-Key", key).json(body)
    }

    /// Creates the request that cancels a payment.
    pub fn cancel(account: &str, payment_id: &str) -> Self {
        Self::post(&format!("/accounts/{account}/payments/{payment_id}/cancel"))
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets a JSON body.
    pub fn json(self, body: &Value) -> Self {
        self.text(body.to_string())
    }

    /// Sets a body, which is declared as JSON unless a content type was added before.
    pub fn text(self, body: impl Into<String>) -> Self {
        let typed = self.headers.iter().any(|(name, _)| name == "Content-Type");
        let typed = if typed { self } else { self.header("Content-Type", "application/json") };
        Self { body: body.into(), ..typed }
    }

    /// Returns the event that API Gateway makes of the request, and the function that it goes to. The authorizer's part
    /// of the event is `authorizer`.
    pub fn event(
        &self,
        id: &str,
        now: DateTime<Utc>,
        authorizer: &Value,
    ) -> Result<(HttpFunction, ApiGatewayV2httpRequest)> {
        let (parts, ()) = self.to(&self.path).body(())?.into_parts();
        event::of(&parts, self.body.as_bytes(), id, now, authorizer)
    }

    fn to(&self, uri: &str) -> http::request::Builder {
        let request = http::Request::builder().method(&self.method).uri(uri);
        self.headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    }
}

/// Returns the path of the payments of a transaction id, which can have any printable character.
pub fn transaction_path(id: &str) -> String {
    format!("/payments?transactionId={}", encoded(id))
}

/// Returns a text as a value in a query.
fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

impl Reply {
    /// Reads a function's response.
    pub fn of(response: ApiGatewayV2httpResponse) -> Result<Self> {
        let Some(Body::Text(text)) = response.body else { bail!("the body is not text") };
        let named = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let mut headers: Vec<_> = response.headers.iter().map(named).collect();
        headers.sort();
        Ok(Self { status: response.status_code.try_into()?, headers, text })
    }

    /// Parses the body.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.text).with_context(|| format!("the body is not JSON: {}", self.text))
    }

    /// Whether the same request may succeed later.
    pub fn is_for_later(&self) -> bool {
        self.status >= 500 || self.status == 429
    }
}

impl Client {
    /// Creates a client of the functions of this process, which may do everything.
    pub fn of_functions(functions: Functions, clock: Clock) -> Self {
        Self::of(Target::Functions(Box::new(functions), clock))
    }

    /// Creates a client of the API at a URL, over these connections, with an access token if the API wants one.
    pub fn of_url(url: &str, token: Option<&str>, connector: SharedHttpConnector) -> Result<Self> {
        let invalid = || format!("{url} is not the URL of an API; give --url one such as http://127.0.0.1:8080");
        let base = url.trim_end_matches('/');
        let parsed: http::Uri = base.parse().with_context(invalid)?;
        if !matches!(parsed.scheme_str(), Some("http" | "https")) || parsed.query().is_some() {
            bail!(invalid());
        }
        Ok(Self::of(Target::Http { connector, url: base.into(), token: token.map(Arc::from) }))
    }

    fn of(target: Target) -> Self {
        Self { target, requests: Arc::default(), retries: Arc::default() }
    }

    /// Returns how many requests were sent again.
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Sends a request until a reply is `done`, with a pause before each further try. Returns the last reply if none is.
    pub async fn send_until(&self, request: &Request, done: impl Fn(&Reply) -> bool + Send) -> Result<Reply> {
        for tried in 1..TRIES {
            match self.send(request).await {
                Ok(reply) if done(&reply) => return Ok(reply),
                _ => {}
            }
            self.retries.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(PAUSE * tried).await;
        }
        self.send(request).await
    }

    /// Returns what is at a path.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.get_until(path, |reply| !reply.is_for_later()).await
    }

    /// Returns what is at a path, which is asked for until a reply is `done`.
    pub async fn get_until(&self, path: &str, done: impl Fn(&Reply) -> bool + Send) -> Result<Value> {
        let reply = self.send_until(&Request::get(path), done).await?;
        if reply.status != 200 {
            bail!("GET {path} was answered {}: {}{}", reply.status, reply.text, self.what_to_do(&reply));
        }
        reply.json().with_context(|| format!("GET {path}"))
    }

    /// Shows the payments of a list, page by page. The path has a query.
    pub async fn pages(&self, path: &str, mut show: impl FnMut(&[Value])) -> Result<()> {
        let mut next = path.to_owned();
        loop {
            let page = self.get(&next).await?;
            show(page["payments"].as_array().with_context(|| format!("GET {next} was answered without payments"))?);
            let Some(cursor) = page["nextCursor"].as_str() else { return Ok(()) };
            next = format!("{path}&cursor={}", encoded(cursor));
        }
    }

    async fn send(&self, request: &Request) -> Result<Reply> {
        let answered = tokio::time::timeout(TIMEOUT, async {
            match &self.target {
                Target::Functions(functions, clock) => self.invoke(functions, clock, request).await,
                Target::Http { connector, url, token } => over_http(connector, url, token.as_deref(), request).await,
            }
        });
        answered.await.with_context(|| format!("{} was not answered within {TIMEOUT:?}", request.path))?
    }

    async fn invoke(&self, functions: &Functions, clock: &Clock, request: &Request) -> Result<Reply> {
        let id = format!("local-{}", self.requests.fetch_add(1, Ordering::Relaxed) + 1);
        let authorizer = event::all_scopes(event::DEVELOPMENT_CLIENT);
        let (function, event) = request.event(&id, clock.instant(), &authorizer)?;
        // Boxed: the chain of calls is deeper than the compiler follows in one type.
        Reply::of(Box::pin(functions.invoke(function, event)).await).with_context(|| request.path.clone())
    }

    fn what_to_do(&self, reply: &Reply) -> &'static str {
        match (&self.target, reply.status) {
            (Target::Functions(..), _) => "",
            (_, 401) => "; give an access token with --token or in PAYMENTS_TOKEN",
            (_, 403) => "; the token needs every scope (payments/read, write, inspect and operate), and no accounts",
            (_, 404) => "; give --url the API's own URL, without a path of the API",
            _ => "",
        }
    }
}

async fn over_http(
    connector: &SharedHttpConnector,
    url: &str,
    token: Option<&str>,
    request: &Request,
) -> Result<Reply> {
    let mut sent = request.to(&format!("{url}{}", request.path)).header("content-length", request.body.len());
    if let Some(token) = token {
        sent = sent.header("authorization", format!("Bearer {token}"));
    }
    let unreachable = || format!("nothing answers at {url}; is it running, and is that its URL?");
    let answer = connector.call(sent.body(SdkBody::from(request.body.as_str()))?.try_into()?).await;
    let answer = answer.with_context(unreachable)?;
    let named = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let (status, mut headers) = (answer.status().as_u16(), answer.headers().iter().map(named).collect::<Vec<_>>());
    headers.sort();
    let body = ByteStream::new(answer.into_body()).collect().await.with_context(unreachable)?.into_bytes();
    Ok(Reply { status, headers, text: String::from_utf8(body.into())? })
}

#[cfg(test)]
mod tests {
    use aws_smithy_http_client::Connector;

    use super::*;

    #[test]
    fn an_invalid_url_is_an_error_that_says_what_to_give() {
        let connector = || SharedHttpConnector::new(Connector::builder().build_http());
        for url in ["", "bank", "127.0.0.1:8080", "ftp://bank", "http://bank/?stage=1"] {
            let error = Client::of_url(url, None, connector()).unwrap_err();
            assert!(error.to_string().contains("give --url one such as"), "{url}: {error:#}");
        }
        Client::of_url("http://127.0.0.1:8080/", None, connector()).unwrap();
    }
}
