//! A client of the API: it asks the functions of this process, or an API over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use async_trait::async_trait;
use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use aws_lambda_events::encodings::Body;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::Method;
use payments_boot::Clock;
use payments_http::HttpFunction;
use scheduled_payments::{Bank, BoxError, Builder, Retries, SystemTimer, Timer, Transport};
use serde_json::Value;

use crate::event;
use crate::handlers::Handlers;

/// The tools are impatient, and their runs of one seed the same each time.
const RETRIES: Retries =
    Retries { attempts: 5, total: Duration::MAX, first: Duration::from_millis(100), jitter_percent: 0 };

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
    bank: Bank,
    pauses: Arc<Pauses>,
    is_in_process: bool,
}

/// The functions of this process, which may do everything.
#[derive(Debug)]
struct InProcess {
    functions: Arc<dyn Handlers>,
    clock: Clock,
    requests: AtomicU64,
}

/// The time of Tokio, which counts the pauses.
#[derive(Debug, Default)]
struct Pauses {
    timer: SystemTimer,
    count: AtomicU64,
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

    /// Creates the request that amends a payment that has this version, under the amendment's idempotency key.
    pub fn amend(account: &str, payment_id: &str, (key, version): (&str, u32), body: &Value) -> Self {
        let request = Self::new(Method::PUT, &format!("/accounts/{account}/payments/{payment_id}"));
        request.header("Idempotency-Key", key).header("If-Match", &format!("\"{version}\"")).json(body)
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
        let (parts, body) = self.http()?.into_parts();
        event::from_parts(&parts, &body, id, now, authorizer)
    }

    fn http(&self) -> Result<http::Request<Bytes>> {
        let request = http::Request::builder().method(&self.method).uri(&self.path);
        let request = self.headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        Ok(request.body(self.body.clone().into())?)
    }
}

/// Returns the path of the payments of a transaction id, which can have any printable character.
pub fn transaction_path(id: &str) -> String {
    let id: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    format!("/payments?transactionId={id}")
}

impl Reply {
    /// Reads a function's response.
    pub fn from_response(response: ApiGatewayV2httpResponse) -> Result<Self> {
        Self::read(http_response(response)?)
    }

    fn read(response: http::Response<Bytes>) -> Result<Self> {
        let named = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let mut headers: Vec<_> = response.headers().iter().map(named).collect();
        headers.sort();
        let status = response.status().as_u16();
        Ok(Self { status, headers, text: String::from_utf8(response.into_body().into())? })
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

/// Returns a function's response as one of HTTP.
fn http_response(response: ApiGatewayV2httpResponse) -> Result<http::Response<Bytes>> {
    let Some(Body::Text(text)) = response.body else { bail!("the body is not text") };
    let mut built = http::Response::new(Bytes::from(text));
    *built.status_mut() = u16::try_from(response.status_code)?.try_into()?;
    *built.headers_mut() = response.headers;
    Ok(built)
}

#[async_trait]
impl Transport for InProcess {
    async fn exchange(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, BoxError> {
        let id = format!("local-{}", self.requests.fetch_add(1, Ordering::Relaxed) + 1);
        let authorizer = event::all_scopes(event::DEVELOPMENT_CLIENT);
        let (parts, body) = request.into_parts();
        let (function, event) = event::from_parts(&parts, &body, &id, self.clock.instant(), &authorizer)?;
        // Boxed: the chain of calls is deeper than the compiler follows in one type.
        Ok(http_response(self.functions.invoke(function, event).await)?)
    }
}

#[async_trait]
impl Timer for Pauses {
    fn now(&self) -> Duration {
        self.timer.now()
    }

    async fn wait(&self, pause: Duration) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.timer.wait(pause).await;
    }

    /// No chance: a run of one seed is the same each time.
    fn random(&self) -> u32 {
        0
    }
}

impl Client {
    /// Creates a client of the functions of this process, which may do everything.
    pub fn for_functions(functions: Arc<dyn Handlers>, clock: Clock) -> Result<Self> {
        let functions = InProcess { functions, clock, requests: AtomicU64::new(0) };
        Ok(Self { is_in_process: true, ..Self::from_builder(Bank::over(Arc::new(functions), "http://functions"))? })
    }

    /// Creates a client of the API at a URL, over this transport, with an access token if the API wants one.
    pub fn for_url(url: &str, token: Option<&str>, transport: Arc<dyn Transport>) -> Result<Self> {
        let bank = Bank::over(transport, url);
        let bank = token.into_iter().fold(bank, Builder::token);
        Self::from_builder(bank).context("give --url one such as http://127.0.0.1:8080")
    }

    fn from_builder(bank: Builder) -> Result<Self> {
        let pauses = Arc::new(Pauses::default());
        let bank = bank.retries(RETRIES).timer(pauses.clone()).build()?;
        Ok(Self { bank, pauses, is_in_process: false })
    }

    /// Returns the bank, with a method for each operation.
    pub fn bank(&self) -> &Bank {
        &self.bank
    }

    /// Returns how many requests were sent again.
    pub fn retries(&self) -> u64 {
        self.pauses.count.load(Ordering::Relaxed)
    }

    /// Sends a request until a reply is `done`, with a pause before each further try. Returns the last reply if none is.
    pub async fn send_until(&self, request: &Request, done: impl Fn(&Reply) -> bool + Send) -> Result<Reply> {
        let mut tries = self.bank.tries();
        loop {
            let sent = self.send(request).await;
            if sent.as_ref().is_ok_and(&done) || !tries.pause(None).await {
                return sent;
            }
        }
    }

    /// Returns the JSON at a path.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.get_until(path, |reply| !reply.is_for_later()).await
    }

    /// Returns the JSON at a path, which is requested until a reply is `done`.
    pub async fn get_until(&self, path: &str, done: impl Fn(&Reply) -> bool + Send) -> Result<Value> {
        let reply = self.send_until(&Request::get(path), done).await?;
        if reply.status != 200 {
            bail!("GET {path} was answered {}: {}{}", reply.status, reply.text, self.what_to_do(&reply));
        }
        reply.json().with_context(|| format!("GET {path}"))
    }

    async fn send(&self, request: &Request) -> Result<Reply> {
        let hint = if self.is_in_process { "" } else { "; is it running, and is that its URL?" };
        let response = self.bank.exchange(request.http()?).await;
        Reply::read(response.with_context(|| format!("{} has no reply{hint}", request.path))?)
    }

    fn what_to_do(&self, reply: &Reply) -> &'static str {
        match reply.status {
            _ if self.is_in_process => "",
            401 => "; give an access token with --token or in PAYMENTS_TOKEN",
            403 => "; the token needs every scope (payments/read, write, inspect and operate), and no accounts",
            404 => "; give --url the API's own URL, without a path of the API",
            _ => "",
        }
    }
}
