//! Answers, and the boundary where a result is logged once and becomes API Gateway's response.

use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use aws_lambda_events::encodings::Body;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;

use crate::Problem;

/// What a client gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    /// An answer with a body of this type. Nothing here may be cached: it is about money.
    #[must_use]
    pub fn new(status: u16, content_type: &'static str, body: String) -> Self {
        let headers = HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static(content_type)),
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ]);
        Self { status, headers, body }
    }

    /// A JSON answer.
    ///
    /// # Errors
    /// [`Problem::internal`] where the value cannot be written as JSON.
    pub fn json(status: u16, value: &impl Serialize) -> Result<Self, Problem> {
        let body = serde_json::to_string(value).map_err(Problem::internal)?;
        Ok(Self::new(status, "application/json", body))
    }

    /// The same with one more header; a value that no header can carry is left out.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }
}

/// Turns a handler's result into the response, and writes the request's one log line: ids and the
/// route, never bodies, names or amounts.
#[must_use]
pub fn respond(event: &ApiGatewayV2httpRequest, result: Result<Answer, Problem>) -> ApiGatewayV2httpResponse {
    let context = &event.request_context;
    let (route, request_id) = (context.route_key.as_deref(), context.request_id.as_deref());
    let answer = match result {
        Ok(answer) => {
            tracing::info!(route, request_id, status = answer.status, "answered");
            answer
        }
        Err(problem) => {
            let (status, kind, _) = problem.kind().facts();
            if status >= 500 {
                tracing::error!(route, request_id, status, problem = kind, causes = ?problem.causes(), "failed");
            } else {
                tracing::info!(route, request_id, status, problem = kind, "refused");
            }
            problem.answer()
        }
    };
    let mut response = ApiGatewayV2httpResponse::default();
    response.status_code = answer.status.into();
    response.headers = answer.headers;
    response.body = Some(Body::Text(answer.body));
    response
}
