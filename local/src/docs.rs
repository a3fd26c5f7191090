//! The API's description and a page that shows it. People on this machine read them without a token, and both
//! are in this program: nothing comes from elsewhere.

use std::io::{Cursor, Read as _};

use anyhow::{Context as _, Result};
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use payments_model::{BusinessZone, UtcSecond};
use serde_json::Value;
use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;
use zip::ZipArchive;
use zip::result::ZipError;

use crate::example_dates;

/// The path of the page.
pub const PAGE: &str = "/docs";

/// The paths of the description, as it is written and as JSON.
pub const DESCRIPTION: [&str; 2] = ["/openapi.yaml", "/openapi.json"];

/// The answer at `/`, a path outside of the bank's API.
const WHERE: &str = "The system is running. /docs shows the HTTP API; /openapi.yaml and /openapi.json describe it.\n";

const OPENAPI: &str = include_str!("../../openapi.yaml");

/// Our parts of the page. The others are Swagger UI's.
const PARTS: [(&str, &str, &str); 3] = [
    ("index.html", "text/html; charset=utf-8", include_str!("docs/index.html")),
    ("docs.css", "text/css", include_str!("docs/docs.css")),
    ("docs.js", "text/javascript", include_str!("docs/docs.js")),
];

/// The answer to a request for the description or the page, outside of the API's own paths. The
/// description's examples begin at `now`, in a bank in `zone`.
pub(crate) fn answer(request: &Parts, zone: BusinessZone, now: UtcSecond) -> Option<Response> {
    if request.method != Method::GET {
        return None;
    }
    let [yaml, json] = DESCRIPTION;
    match request.uri.path() {
        "/" => Some(with_type("text/plain", WHERE.into())),
        path if path == yaml => {
            Some(description(zone, now).map_or_else(failed, |yaml| with_type("application/yaml", yaml.into())))
        }
        path if path == json => {
            Some(as_json(zone, now).map_or_else(failed, |json| with_type("application/json", json.into())))
        }
        path => {
            let rest = path.strip_prefix(PAGE).filter(|rest| rest.is_empty() || rest.starts_with('/'));
            rest.map(|rest| asset(rest).unwrap_or_else(failed))
        }
    }
}

fn with_type(content_type: &'static str, body: Body) -> Response {
    const NO_CACHE: (HeaderName, &str) = (axum::http::header::CACHE_CONTROL, "no-cache");
    ([(CONTENT_TYPE, content_type), NO_CACHE], body).into_response()
}

/// Returns the description, whose examples begin at `now`, in a bank in `zone`.
pub fn description(zone: BusinessZone, now: UtcSecond) -> Result<String> {
    example_dates::near(OPENAPI, zone.date_of(now), zone)
}

fn as_json(zone: BusinessZone, now: UtcSecond) -> Result<String> {
    Ok(payments_machine::yaml::from_str::<Value>(&description(zone, now)?)?.to_string())
}

/// The page or one of its parts: ours, or Swagger UI's, from the archive that its crate carries.
fn asset(path: &str) -> Result<Response> {
    let name = match path.trim_start_matches('/') {
        "" => "index.html",
        name => name,
    };
    if let Some((_, content_type, part)) = PARTS.iter().find(|(ours, ..)| *ours == name) {
        return Ok(with_type(content_type, (*part).into()));
    }
    let Some(file) = unzipped(name)? else {
        return Ok((StatusCode::NOT_FOUND, "There is no such part of this page.").into_response());
    };
    Ok(match name.rsplit('.').next() {
        Some("css") => with_type("text/css", file.into()),
        Some("js") => with_type("text/javascript", file.into()),
        Some("png") => with_type("image/png", file.into()),
        _ => with_type("application/octet-stream", file.into()),
    })
}

/// A file of Swagger UI's `dist` folder; `None` if there is no such file.
fn unzipped(name: &str) -> Result<Option<Vec<u8>>> {
    let mut archive = ZipArchive::new(Cursor::new(SWAGGER_UI_VENDORED))?;
    let first = archive.name_for_index(0).context("the archive is empty")??.into_owned();
    let root = first.split_once('/').context("the archive has no folder")?.0;
    let mut file = match archive.by_name(&format!("{root}/dist/{name}")) {
        Ok(file) if file.is_file() => file,
        Ok(_) | Err(ZipError::FileNotFound) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok(Some(content))
}

fn failed(error: anyhow::Error) -> Response {
    tracing::error!(%error, "the API's description cannot be shown");
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}
