//! The HTTP API on one machine: it turns requests into API Gateway events and invokes the functions with them.
//!
//! Only requests for the API's description are answered here.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use aws_lambda_events::apigw::ApiGatewayV2httpResponse;
use aws_lambda_events::encodings::Body as LambdaBody;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use payments_boot::Clock;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::docs;
use crate::engine::listen;
use crate::event;
use crate::functions::Functions;
use crate::token::Issuer;

/// The path that issues tokens, if the API requires them. It is not a path of the bank's API: on AWS it belongs to the
/// identity provider.
pub const TOKEN_PATH: &str = "/oauth2/token";

/// API Gateway's limit on a request's body, in bytes.
const MAX_BODY_BYTES: usize = 10 * 1024 * 1024;

/// A running HTTP API.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<std::io::Result<()>>,
}

/// The state that requests share.
struct Shared {
    functions: Functions,
    clock: Clock,
    requests: AtomicU64,
    issuer: Option<Arc<Issuer>>,
}

impl Gateway {
    /// Starts the API on `port` of the loopback interface (0 is any free one). With an issuer it requires a token of that
    /// issuer. Without one every request is the development client's.
    pub async fn start(port: u16, functions: Functions, clock: Clock, issuer: Option<Arc<Issuer>>) -> Result<Self> {
        let listener = listen(port, "--api-port").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { functions, clock, requests: AtomicU64::new(0), issuer });
        let router = Router::new().fallback(answer).with_state(shared);
        let (stop, stopped) = oneshot::channel::<()>();
        let served = axum::serve(listener, router).with_graceful_shutdown(async { drop(stopped.await) });
        Ok(Self { address, stop, server: tokio::spawn(async { served.await }) })
    }

    /// Returns the URL of the API.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops the API after the requests that are under way.
    pub async fn stop(self) -> Result<()> {
        drop(self.stop);
        Ok(self.server.await??)
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if let Some(answer) = docs::answer(&parts) {
        return answer;
    }
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
        return gateway_error(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large");
    };
    let number = shared.requests.fetch_add(1, Ordering::Relaxed) + 1;
    let (request_id, now) = (format!("local-{number}"), shared.clock.instant());
    let authorizer = match &shared.issuer {
        None => event::all_scopes(event::DEVELOPMENT_CLIENT),
        Some(issuer) if parts.uri.path() == TOKEN_PATH => return token(issuer, &body, now),
        Some(issuer) => {
            let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let Some(claims) = issuer.accept(header, now) else { return unauthorized() };
            event::jwt(&claims)
        }
    };
    match event::of(&parts, &body, &request_id, now, &authorizer) {
        Ok((function, event)) => rendered(shared.functions.invoke(function, event).await),
        Err(_) => gateway_error(StatusCode::BAD_REQUEST, "Bad Request"),
    }
}

/// Returns the response of API Gateway to a request without a valid token.
fn unauthorized() -> Response {
    let mut response = gateway_error(StatusCode::UNAUTHORIZED, "Unauthorized");
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

fn token(issuer: &Issuer, form: &[u8], now: DateTime<Utc>) -> Response {
    match issuer.answer(form, now) {
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
