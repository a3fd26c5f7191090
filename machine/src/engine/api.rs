//! The DynamoDB API over HTTP: requests are checked here, and [`Direct`]'s operations answer them.
//!
//! The engine's own server allows every site. This one refuses whatever a browser sends: see [`reply`].

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderName, ORIGIN};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use dynoxide::auth_material::{AuthMaterial, validate};
use http_body_util::LengthLimitError;

use super::direct::{Direct, operation};

/// DynamoDB's limit on a request's body, in bytes.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// The names of DynamoDB and of its streams before an operation's.
const TARGETS: [&str; 2] = ["DynamoDB_20120810.", "DynamoDBStreams_20120810."];

const AMZ_JSON: &str = "application/x-amz-json-1.0";

const PLAIN_JSON: &str = "application/json";

/// DynamoDB's answer to a request that does not belong to its protocol.
const NO_REQUEST: (StatusCode, &str, &str) = (StatusCode::NOT_FOUND, "", "<UnknownOperationException/>\n");

/// The answer to what a browser sends.
const FOREIGN: &str = r#"{"__type":"com.amazonaws.dynamodb.v20120810#AccessDeniedException",
"message":"Browsers may not call this engine: a request with an Origin is refused"}"#;

/// The state that requests share.
struct Shared {
    engine: Direct,
    requests: AtomicU64,
}

/// Returns the API of an engine.
pub(super) fn router(engine: Direct) -> Router {
    Router::new().fallback(answer).with_state(Arc::new(Shared { engine, requests: AtomicU64::new(0) }))
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let number = shared.requests.fetch_add(1, Ordering::Relaxed) + 1;
    let (status, content_type, body) = reply(&shared.engine, request).await;
    let mut response = (status, Body::from(body)).into_response();
    let headers = response.headers_mut();
    if !content_type.is_empty() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    // DynamoDB's have as many characters.
    if let Ok(id) = HeaderValue::try_from(format!("{number:052}")) {
        headers.insert(HeaderName::from_static("x-amzn-requestid"), id);
    }
    response
}

/// Returns the status, the content type and the body of the answer.
///
/// Requests with an `Origin` are rejected. Browsers send one with every preflight and every POST,
/// also of a page whose name was made to lead to this machine. SDKs, the AWS CLI and containers
/// send none. So the `Host` needs no check: containers call this machine by another name.
async fn reply(engine: &Direct, request: Request) -> (StatusCode, &'static str, String) {
    let (parts, body) = request.into_parts();
    if parts.headers.contains_key(ORIGIN) {
        return (StatusCode::FORBIDDEN, AMZ_JSON, FOREIGN.to_owned());
    }
    let said = |(status, content_type, body): (StatusCode, &'static str, &str)| (status, content_type, body.to_owned());
    match parts.method {
        _ if parts.uri.path() != "/" => return said(NO_REQUEST),
        Method::POST => {}
        Method::GET => return said((StatusCode::OK, "", "healthy: dynamodb.us-east-1.amazonaws.com ")),
        _ => return said(NO_REQUEST),
    }
    let body = match to_bytes(body, MAX_BODY_BYTES).await {
        Ok(body) => body,
        Err(error) if error.source().is_some_and(|cause| cause.is::<LengthLimitError>()) => {
            return said((StatusCode::PAYLOAD_TOO_LARGE, "", ""));
        }
        Err(_) => return said((StatusCode::BAD_REQUEST, "", "")),
    };
    let Some(json) = json_form(&parts.headers, body.is_empty()) else { return said(NO_REQUEST) };
    let bad = |body: String| (StatusCode::BAD_REQUEST, json, body);
    let target = text(&parts.headers, &HeaderName::from_static("x-amz-target")).unwrap_or_default();
    let named = TARGETS.iter().find_map(|prefix| target.strip_prefix(prefix));
    let Some(operation) = named.and_then(operation::<String>) else {
        return bad(r#"{"__type":"com.amazon.coral.service#UnknownOperationException"}"#.to_owned());
    };
    let signed = AuthMaterial {
        authorization: text(&parts.headers, &AUTHORIZATION),
        query: parts.uri.query().unwrap_or_default(),
        has_date_header: ["x-amz-date", DATE.as_str()].iter().any(|name| parts.headers.contains_key(*name)),
    };
    if let Some(why) = validate(signed) {
        return bad(why);
    }
    match operation(&engine.0, &body) {
        Ok(output) => (StatusCode::OK, json, output),
        Err(error) => {
            let status = StatusCode::from_u16(error.status_code()).unwrap_or(StatusCode::BAD_REQUEST);
            (status, json, error.to_json())
        }
    }
}

/// Returns the content type of the answer to JSON, which is that of the request. Nothing if that is not JSON.
fn json_form(headers: &HeaderMap, is_empty: bool) -> Option<&'static str> {
    let sent = text(headers, &CONTENT_TYPE).unwrap_or_default();
    let name = sent.split(';').next().unwrap_or_default().trim();
    match [AMZ_JSON, PLAIN_JSON].into_iter().find(|json| name.eq_ignore_ascii_case(json)) {
        None if is_empty && sent.is_empty() => Some(PLAIN_JSON),
        found => found,
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests;
