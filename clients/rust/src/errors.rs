//! The errors of the client.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A request that did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A problem of the API.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// An error without a problem: of API Gateway, of an intermediary, or of the issuer of tokens. With the status of a
    /// success, the request took effect, and its response differs from openapi.yaml.
    #[error("{status}: {detail}")]
    Gateway {
        /// The HTTP status.
        status: u16,
        /// Its message, or the whole response.
        detail: String,
        /// The id of the request, if the response has it.
        request_id: Option<String>,
        /// The wait before the next attempt, if the response demands one.
        retry_after: Option<Duration>,
    },
    /// No response: the connection was refused or lost, or too slow. The request may have taken effect.
    #[error("No response from {host}: {reason}")]
    NoAnswer {
        /// The host of the request, with its port if the URL names one.
        host: String,
        /// The fault of the connection.
        reason: String,
    },
    /// The function that returns tokens failed. Nothing was sent.
    #[error("There is no token: {0}")]
    Token(BoxError),
    /// An argument is invalid. Nothing was sent.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// Returns the HTTP status, if there was a response.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Problem(problem) => Some(problem.status),
            Self::Gateway { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Returns the problem, if the response had one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem(problem) => Some(problem),
            _ => None,
        }
    }

    /// Returns the id of the request, if the response had it. Log it.
    pub fn request_id(&self) -> Option<&str> {
        match self {
            Self::Problem(problem) => problem.request_id.as_deref(),
            Self::Gateway { request_id, .. } => request_id.as_deref(),
            _ => None,
        }
    }

    /// Returns the wait before the next attempt, in whole seconds, if the response demanded one.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Problem(problem) => problem.retry_after,
            Self::Gateway { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns the error of a response other than a success.
    pub(crate) fn from_response(response: &Response<Bytes>) -> Self {
        let (status, headers) = (response.status(), response.headers());
        if let Ok(mut problem) = serde_json::from_slice::<Problem>(response.body()) {
            problem.status = status.as_u16();
            problem.request_id = problem.request_id.or_else(|| request_id(headers));
            problem.retry_after = retry_after(headers).or(problem.retry_after);
            return Self::Problem(Box::new(problem));
        }
        let body: Option<Value> = serde_json::from_slice(response.body()).ok();
        let message = body.as_ref().and_then(|body| body["message"].as_str()).map(str::to_owned);
        let detail = match message.unwrap_or_else(|| String::from_utf8_lossy(response.body()).into_owned()) {
            empty if empty.is_empty() => status.canonical_reason().unwrap_or_default().to_owned(),
            detail => detail,
        };
        Self::gateway(response, detail)
    }

    /// Returns the error of a success whose content contradicts the request.
    pub(crate) fn contradiction(detail: String) -> Self {
        Self::Gateway { status: StatusCode::OK.as_u16(), detail, request_id: None, retry_after: None }
    }

    /// Returns the error of a malformed response.
    pub(crate) fn gateway(response: &Response<Bytes>, detail: String) -> Self {
        Self::Gateway {
            status: response.status().as_u16(),
            detail,
            request_id: request_id(response.headers()),
            retry_after: retry_after(response.headers()),
        }
    }
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    Some(headers.get("x-request-id")?.to_str().ok()?.to_owned())
}

/// Returns the seconds of the header; `None` for a date or an invalid text.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    whole_seconds(&headers.get(http::header::RETRY_AFTER)?.to_str().ok()?.into())
}

/// A problem of the API: docs/problems.md has all.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, thiserror::Error)]
#[error("{status} {}: {detail}", self.kind())]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Problem {
    /// Its type, a name that is the same at every bank.
    pub r#type: String,
    /// Its title.
    #[serde(default)]
    pub title: Option<String>,
    /// The HTTP status.
    #[serde(default)]
    pub status: u16,
    /// The address of a page about it, relative to that of the API.
    #[serde(default)]
    pub help: Option<String>,
    /// The fault and its remedy.
    pub detail: String,
    /// The field at fault.
    #[serde(default)]
    pub field: Option<String>,
    /// The fields that differ from those of the first request with this key.
    #[serde(default)]
    pub fields: Vec<String>,
    /// Every fault of the body.
    #[serde(default)]
    pub errors: Vec<Fault>,
    /// The number of bytes by which the body is too large.
    #[serde(default)]
    pub excess_bytes: Option<u64>,
    /// The version that the payment has.
    #[serde(default)]
    pub current_version: Option<u64>,
    /// The cursor of the oldest event that is kept.
    #[serde(default)]
    pub oldest_cursor: Option<String>,
    /// The id of the request.
    #[serde(default)]
    pub request_id: Option<String>,
    /// The wait before the next attempt, in whole seconds.
    #[serde(default, rename = "retryAfterSeconds", deserialize_with = "seconds")]
    pub retry_after: Option<Duration>,
}

impl Problem {
    /// Returns the end of its type, such as `no-such-payment`.
    pub fn kind(&self) -> &str {
        self.r#type.rsplit(':').next().unwrap_or_default()
    }
}

/// One of the faults of a body.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Fault {
    /// Its place as a JSON Pointer.
    pub pointer: String,
    /// Its type, a name that is the same at every bank.
    pub r#type: String,
    /// The fault and its remedy.
    pub detail: String,
}

/// Reads whole seconds; `None` for anything else.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    Ok(whole_seconds(&Value::deserialize(deserializer)?))
}

/// Returns a number of seconds, even if it is written as a text of digits.
pub(crate) fn whole_seconds(value: &Value) -> Option<Duration> {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    value.as_u64().or_else(|| digits(value.as_str()?)).map(Duration::from_secs)
}
