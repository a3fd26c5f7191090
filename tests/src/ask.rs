//! Requests and replies of tests.

use std::fmt;

use anyhow::{Result, ensure};
use aws_lambda_events::apigw::ApiGatewayV2httpResponse;
use serde_json::Value;

pub use payments_machine::client::Request as Ask;

/// A reply. It is displayed as HTTP: status, headers, JSON.
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
    pub fn from_response(response: ApiGatewayV2httpResponse) -> Result<Self> {
        let reply = payments_machine::client::Reply::from_response(response)?;
        let is_page = reply.headers.iter().any(|(name, value)| name == "content-type" && value.starts_with("text/"));
        let body = if is_page { reply.text.clone().into() } else { reply.json()? };
        Ok(Self { status: reply.status.into(), headers: reply.headers, text: reply.text, body })
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A text field of the body; empty if it is missing.
    pub fn field(&self, name: &str) -> &str {
        self.body[name].as_str().unwrap_or_default()
    }

    /// The payments of a list.
    pub fn payments(&self) -> &[Value] {
        self.body["payments"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The ids of the payments of a list.
    pub fn ids(&self) -> Vec<String> {
        self.payments().iter().map(|payment| payment["paymentId"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The reply, which must have this status.
    pub fn with_status(self, status: i64) -> Result<Self> {
        ensure!(self.status == status, "{status} is wanted: {self}");
        Ok(self)
    }

    /// The reply, which must be this problem.
    pub fn refused(self, status: i64, problem: &str) -> Result<Self> {
        ensure!((self.status, self.problem()) == (status, problem), "{status} {problem} is wanted: {self}");
        Ok(self)
    }

    /// The reply, which must be that to a request that came before.
    pub fn replayed(self) -> Result<Self> {
        let is_replay = self.status < 300 && self.header("idempotent-replayed") == Some("true");
        ensure!(is_replay, "a replay is wanted: {self}");
        Ok(self)
    }

    /// The last part of a problem's type.
    pub fn problem(&self) -> &str {
        self.field("type").rsplit(':').next().unwrap_or_default()
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
