//! The API's description, and a page that shows it: for people on this machine, so that neither needs a
//! token. The page and all it loads are in this program; nothing comes from elsewhere.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use utoipa_swagger_ui::Config;

/// Where the page is.
pub const PAGE: &str = "/docs";

/// Where the description is, as it is written and as JSON.
pub const DESCRIPTION: [&str; 2] = ["/openapi.yaml", "/openapi.json"];

const OPENAPI: &str = include_str!("../../openapi.yaml");

/// What a request for the description or the page gets; none of the bank's own paths is among them.
pub(crate) fn answer(request: &Parts) -> Option<Response> {
    if request.method != Method::GET {
        return None;
    }
    let [yaml, json] = DESCRIPTION;
    match request.uri.path() {
        path if path == yaml => Some(of("application/yaml", OPENAPI.to_owned().into())),
        path if path == json => Some(as_json().map_or_else(failed, |json| of("application/json", json.into()))),
        path => path.strip_prefix(PAGE).filter(|rest| rest.is_empty() || rest.starts_with('/')).map(asset),
    }
}

fn of(content_type: &str, body: Body) -> Response {
    const NO_CACHE: (HeaderName, &str) = (axum::http::header::CACHE_CONTROL, "no-cache");
    ([(CONTENT_TYPE, content_type), NO_CACHE], body).into_response()
}

fn as_json() -> Result<String> {
    Ok(serde_yaml_ng::from_str::<Value>(OPENAPI)?.to_string())
}

/// A part of the page, or the page itself.
fn asset(path: &str) -> Response {
    let name = match path.trim_start_matches('/') {
        "" => "index.html",
        name => name,
    };
    // The strict validator is a service on the internet.
    let config = Config::from(DESCRIPTION[0]).validator_url("none");
    match utoipa_swagger_ui::serve(name, Arc::new(config)) {
        Ok(Some(file)) if name == "index.html" => {
            page(&file.bytes).map_or_else(failed, |page| of(&file.content_type, page.into()))
        }
        Ok(Some(file)) => of(&file.content_type, file.bytes.into_owned().into()),
        Ok(None) => (StatusCode::NOT_FOUND, "There is no such part of this page.").into_response(),
        Err(error) => failed(anyhow::anyhow!("{error}")),
    }
}

/// The page, which finds its parts also where its address does not end with a slash.
fn page(html: &[u8]) -> Result<String> {
    let html = std::str::from_utf8(html)?;
    let (before, after) = html.split_once("<head>").context("a page has a head")?;
    Ok(format!("{before}<head>\n    <base href=\"{PAGE}/\">{after}"))
}

fn failed(error: anyhow::Error) -> Response {
    tracing::error!(%error, "the API's description cannot be shown");
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}
