//! HTTP requests as API Gateway passes them to a function: payload format 2.0.
//!
//! Source: API Gateway Developer Guide, "Create AWS Lambda proxy integrations for HTTP APIs". Header names are in lower
//! case, repeated headers and parameters are joined by commas, and a body that is not text is in base64. The path is
//! decoded before a route is looked for, so `%2F` separates segments. Both paths of an event captured from a deployed API
//! are decoded: <https://github.com/hotsock/voker/blob/59c7289/vokerhttp/testdata/apigwv2-request.json>.

use std::collections::BTreeMap;

use anyhow::Result;
use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use http::request::Parts;
use payments_http::routes::{self, RouteSpec};
use payments_http::{HttpFunction, Scope};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

/// The client that makes requests on one machine, as the trail names it.
pub const DEVELOPMENT_CLIENT: &str = "local-development";

/// Returns the authorizer's part of an event whose token has every scope.
pub fn all_scopes(client_id: &str) -> Value {
    jwt(&json!({ "client_id": client_id, "scope": Scope::ALL.map(Scope::as_str).join(" ") }))
}

/// Returns the JWT authorizer's part of an event for a token with these claims. Each is text, an array as its elements in
/// brackets. The list of scopes is that of a route that requires none.
///
/// Source: events captured from a deployed API, <https://github.com/floci-io/floci/pull/2011>.
pub fn jwt(claims: &Value) -> Value {
    let claims = claims.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let claims: BTreeMap<&String, String> = claims.map(|(name, value)| (name, as_text(value))).collect();
    json!({ "jwt": { "claims": claims, "scopes": null } })
}

fn as_text(claim: &Value) -> String {
    match claim {
        Value::String(text) => text.clone(),
        Value::Array(elements) => format!("[{}]", elements.iter().map(as_text).collect::<Vec<_>>().join(" ")),
        other => other.to_string(),
    }
}

/// Whether a request is for a public route. API Gateway asks no authorizer about it, so its event has no authorizer's part.
pub fn is_public(parts: &Parts) -> bool {
    route(parts, &decoded(parts.uri.path())).is_some_and(|spec| spec.scope.is_none())
}

fn route(parts: &Parts, path: &str) -> Option<&'static RouteSpec> {
    routes::all().find(|spec| spec.method == parts.method && spec.parameters(path).is_some())
}

/// Returns the event of a request, and the function that it goes to. Without an authorizer its part is null.
pub fn from_parts(
    parts: &Parts,
    body: &[u8],
    request_id: &str,
    now: DateTime<Utc>,
    authorizer: &Value,
) -> Result<(HttpFunction, ApiGatewayV2httpRequest)> {
    let path = decoded(parts.uri.path());
    let path = path.as_str();
    let spec = route(parts, path);
    let key = spec.map_or_else(|| "$default".to_owned(), RouteSpec::key);
    let headers = joined(
        parts
            .headers
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())),
    );
    let query = parts.uri.query().unwrap_or_default();
    let parameters = joined(form_urlencoded::parse(query.as_bytes()).into_owned());
    let (body, is_base64_encoded) = encode(body, headers.get("content-type").map_or("", String::as_str));
    let event = json!({
        "version": "2.0",
        "routeKey": key,
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers,
        "queryStringParameters": parameters,
        "pathParameters": spec.map(|spec| path_parameters(spec, path)).unwrap_or_default(),
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "local",
            "authorizer": authorizer,
            "domainName": headers.get("host"),
            "http": {
                "method": parts.method.as_str(),
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": headers.get("user-agent"),
            },
            "requestId": request_id,
            "routeKey": key,
            "stage": "$default",
            "time": now.format("%d/%b/%Y:%H:%M:%S %z").to_string(),
            "timeEpoch": now.timestamp_millis(),
        },
        "body": body,
        "isBase64Encoded": is_base64_encoded,
    });
    let function = spec.map_or(routes::DEFAULT_FUNCTION, |spec| spec.function);
    Ok((function, serde_json::from_value(event)?))
}

/// Decodes a path. An encoded question mark ends it, as it does on API Gateway
/// (<https://github.com/hotsock/voker/pull/8>).
fn decoded(path: &str) -> String {
    let path = percent_decode_str(path).decode_utf8_lossy();
    path.split('?').next().unwrap_or_default().to_owned()
}

fn path_parameters<'p>(spec: &RouteSpec, path: &'p str) -> BTreeMap<&'static str, &'p str> {
    spec.parameters(path).unwrap_or_default().into_iter().collect()
}

fn joined(pairs: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let mut joined: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in pairs {
        joined.entry(name).and_modify(|values| *values = format!("{values},{value}")).or_insert(value);
    }
    joined
}

/// Encodes a body: API Gateway passes text through and everything else in base64.
fn encode(body: &[u8], content_type: &str) -> (Option<String>, bool) {
    if body.is_empty() {
        return (None, false);
    }
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_text = essence.starts_with("text/")
        || matches!(essence.as_str(), "application/json" | "application/xml" | "application/javascript");
    match std::str::from_utf8(body) {
        Ok(text) if is_text => (Some(text.to_owned()), false),
        _ => (Some(STANDARD.encode(body)), true),
    }
}
