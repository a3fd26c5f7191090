//! Requests as tests write them, and replies as they read them.

use std::fmt;

use anyhow::{Context as _, Result};
use aws_lambda_events::apigw::ApiGatewayV2httpResponse;
use aws_lambda_events::encodings::Body;
use serde_json::Value;

/// A request.
#[derive(Debug, Clone)]
pub struct Ask {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Ask {
    fn new(method: &'static str, path: &str) -> Self {
        Self { method, path: path.to_owned(), headers: Vec::new(), body: String::new() }
    }

    /// The request without its body.
    pub(crate) fn parts(&self) -> Result<http::request::Parts> {
        let request = http::Request::builder().method(self.method).uri(&self.path);
        let request = self.headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        Ok(request.body(())?.into_parts().0)
    }

    /// A GET.
    #[must_use]
    pub fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    /// A POST without a body.
    #[must_use]
    pub fn post(path: &str) -> Self {
        Self::new("POST", path)
    }

    /// The create of a payment of `account` under `key`.
    #[must_use]
    pub fn create(account: &str, key: &str, body: &Value) -> Self {
        Self::post(&format!("/accounts/{account}/payments")).header("Idempotency-Key", key).json(body)
    }

    /// The cancel of a payment.
    #[must_use]
    pub fn cancel(account: &str, payment_id: &str) -> Self {
        Self::post(&format!("/accounts/{account}/payments/{payment_id}/cancel"))
    }

    /// The same with a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same with a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.text(&body.to_string())
    }

    /// The same with a body that says it is JSON.
    #[must_use]
    pub fn text(self, body: &str) -> Self {
        let typed = self.headers.iter().any(|(name, _)| name == "Content-Type");
        let typed = if typed { self } else { self.header("Content-Type", "application/json") };
        Self { body: body.to_owned(), ..typed }
    }
}

/// A reply. Shown, it reads as on the wire: status, headers, JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The HTTP status.
    pub status: i64,
    /// The headers, in order of their names.
    pub headers: Vec<(String, String)>,
    /// The body as text.
    pub text: String,
    /// The body as JSON.
    pub body: Value,
}

impl Reply {
    /// Reads a function's response.
    ///
    /// # Errors
    /// Where the body is not JSON text.
    pub fn of(response: ApiGatewayV2httpResponse) -> Result<Self> {
        let Some(Body::Text(text)) = response.body else { anyhow::bail!("the body is not text") };
        let body = serde_json::from_str(&text).with_context(|| format!("the body is not JSON: {text}"))?;
        let named = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let mut headers: Vec<_> = response.headers.iter().map(named).collect();
        headers.sort();
        Ok(Self { status: response.status_code, headers, text, body })
    }

    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A text field of the body; empty where it is none.
    #[must_use]
    pub fn field(&self, name: &str) -> &str {
        self.body[name].as_str().unwrap_or_default()
    }

    /// The payments of a list.
    #[must_use]
    pub fn payments(&self) -> &[Value] {
        self.body["payments"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The last part of a problem's type.
    #[must_use]
    pub fn problem(&self) -> &str {
        self.field("type").rsplit('/').next().unwrap_or_default()
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.status)?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {value}")?;
        }
        let json = serde_json::to_string_pretty(&self.body).map_err(|_| fmt::Error)?;
        write!(f, "\n{json}")
    }
}
