//! The HTTP API on one machine: it turns requests into API Gateway events and invokes the functions with them.
//!
//! Only requests for the API's description are answered here.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use aws_lambda_events::apigw::ApiGatewayV2httpResponse;
use aws_lambda_events::encodings::Body as LambdaBody;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use http_body_util::LengthLimitError;
use payments_bank::Functions;
use payments_boot::Clock;
use payments_machine::environment::{AUTHORIZE_PATH, TOKEN_PATH};
use payments_machine::links::{REPORTS_PATH, ReportLinks};
use payments_machine::server::{Limits, Server, listen};
use payments_machine::{Handlers as _, event};
use payments_model::BusinessZone;
use serde_json::Value;
use tokio::time::timeout;

use crate::admission;
use crate::docs;
use crate::invoke;
use crate::provider::Provider;
use crate::sandbox::{CLOCK_PATH, Sandbox};
use crate::token::Issuer;

/// API Gateway's limit on a request's body, in bytes.
const MAX_BODY_BYTES: usize = 10 * 1024 * 1024;

/// The longest that a client may take to send a request's head, and then its body. A connection that is idle for as long is
/// closed. So nobody's half-sent request delays the end for longer.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// A running HTTP API.
#[derive(Debug)]
pub struct Gateway(Server);

/// The bank behind an API.
#[derive(Debug, Clone)]
pub struct Bank {
    /// The functions.
    pub functions: Functions,
    /// The clock.
    pub clock: Clock,
    /// The bank's time zone.
    pub zone: BusinessZone,
    /// The reports that the console has links to.
    pub reports: ReportLinks,
}

/// The state that requests share.
struct Shared {
    bank: Bank,
    /// The start of the API, in milliseconds of the machine: another start makes other ids of requests.
    started: i64,
    requests: AtomicU64,
    provider: Option<Provider>,
    sandbox: Option<Sandbox>,
}

impl Gateway {
    /// Starts the API of a bank on `port` of the loopback interface (0 is any free one). With an issuer it
    /// requires a token of that issuer. Without one every request is the development client's.
    pub async fn start(port: u16, bank: Bank, issuer: Option<Arc<Issuer>>, sandbox: Option<Sandbox>) -> Result<Self> {
        let listener = listen(port, "--api-port").await?;
        let port = listener.local_addr()?.port();
        let provider = issuer.map(|issuer| Provider::new(issuer, port));
        let started = Clock::system().instant().timestamp_millis();
        let shared = Arc::new(Shared { bank, started, requests: AtomicU64::new(0), provider, sandbox });
        let router = Router::new().fallback(answer).with_state(shared);
        Ok(Self(Server::start(listener, router, Limits { head: Some(SEND_TIMEOUT), end: None })?))
    }

    /// Returns the URL of the API.
    pub fn url(&self) -> String {
        self.0.url()
    }

    /// Stops the API after the requests that are under way.
    pub async fn stop(self) -> Result<()> {
        self.0.stop().await
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    // These paths never need a token: the clock, invocations, and those that give tokens.
    let path = parts.uri.path();
    let is_open =
        shared.provider.is_none() || path == CLOCK_PATH || path == TOKEN_PATH || invoke::invoked(&parts).is_some();
    if let Some((status, why)) = admission::refusal(&parts, is_open) {
        return gateway_error(status, why);
    }
    if let Some(answer) = docs::answer(&parts, shared.bank.zone, shared.bank.clock.now()) {
        return answer;
    }
    let body = match timeout(SEND_TIMEOUT, to_bytes(body, MAX_BODY_BYTES)).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) if error.source().is_some_and(|cause| cause.is::<LengthLimitError>()) => {
            return gateway_error(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large");
        }
        Ok(Err(_)) => return gateway_error(StatusCode::BAD_REQUEST, "Bad Request"),
        Err(_) => return gateway_error(StatusCode::REQUEST_TIMEOUT, "Request Timeout"),
    };
    let number = shared.requests.fetch_add(1, Ordering::Relaxed) + 1;
    let (request_id, now) = (format!("local-{}-{number}", shared.started), shared.bank.clock.instant());
    let token_now = shared.sandbox.as_ref().map_or(now, Sandbox::machine_now);
    if let Some(sandbox) = shared.sandbox.as_ref().filter(|_| parts.uri.path() == CLOCK_PATH) {
        let (status, json) = sandbox.answer(&parts.method, &body).await;
        return (status, [(CONTENT_TYPE, "application/json")], json).into_response();
    }
    if let Some(name) = invoke::invoked(&parts) {
        return invoke::answer(&shared.bank.functions, &shared.bank.clock, name, &body).await;
    }
    if let Some(code) = parts.uri.path().strip_prefix(REPORTS_PATH).filter(|_| parts.method == Method::GET) {
        return file(shared.bank.reports.file(code, &shared.bank.clock).await);
    }
    let authorizer = match &shared.provider {
        Some(provider) if parts.uri.path() == AUTHORIZE_PATH => return provider.authorize(&parts, &body, token_now),
        Some(provider) if parts.uri.path() == TOKEN_PATH => return token(provider, &body, token_now),
        _ if event::is_public(&parts) => Value::Null,
        None => event::all_scopes(event::DEVELOPMENT_CLIENT),
        Some(provider) => {
            let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let Some(claims) = provider.issuer().accept(header, token_now) else { return unauthorized() };
            event::jwt(&claims)
        }
    };
    match event::from_parts(&parts, &body, &request_id, now, &authorizer) {
        Ok((function, event)) => rendered(shared.bank.functions.invoke(function, event).await),
        Err(_) => gateway_error(StatusCode::BAD_REQUEST, "Bad Request"),
    }
}

/// Returns a file of a report, as S3 does for a signed link.
fn file(found: Option<(String, Vec<u8>)>) -> Response {
    let Some((name, bytes)) = found else {
        return gateway_error(StatusCode::FORBIDDEN, "The link has expired; load the report's view again");
    };
    let disposition = format!("attachment; filename=\"{name}\"");
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_DISPOSITION, disposition),
        (CACHE_CONTROL, "no-store".to_owned()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
    ];
    (headers, bytes).into_response()
}

/// Returns the response of API Gateway to a request without a valid token.
fn unauthorized() -> Response {
    let mut response = gateway_error(StatusCode::UNAUTHORIZED, "Unauthorized");
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

fn token(provider: &Provider, form: &[u8], now: DateTime<Utc>) -> Response {
    if let Some(answer) = provider.change(form, now) {
        return answer;
    }
    match provider.issuer().answer(form, now) {
        Ok(token) => ([(CONTENT_TYPE, "application/json")], token).into_response(),
        Err(error) => gateway_error(StatusCode::BAD_REQUEST, &error.to_string()),
    }
}

fn rendered(response: ApiGatewayV2httpResponse) -> Response {
    let body = match response.body {
        Some(LambdaBody::Text(text)) => Body::from(text),
        Some(LambdaBody::Binary(bytes)) => Body::from(bytes),
        _ => Body::empty(),
    };
    let status = u16::try_from(response.status_code).ok().and_then(|status| StatusCode::from_u16(status).ok());
    let Some(status) = status else {
        return gateway_error(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error");
    };
    (status, response.headers, body).into_response()
}

/// Returns an error response of API Gateway, in its own words.
fn gateway_error(status: StatusCode, message: &str) -> Response {
    (status, [("content-type", "application/json")], format!("{{\"message\":\"{message}\"}}")).into_response()
}
