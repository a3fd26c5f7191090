//! Answers, and the boundary where each result is logged once and becomes API Gateway's response.

use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use aws_lambda_events::encodings::Body;
use http::header::{ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;

use crate::access::Access;
use crate::problem::{Problem, ProblemKind};
use crate::request::{ENCODING, Request};
use crate::view::PaymentView;

/// The answer to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    /// Creates an answer that may not be cached.
    fn new(status: u16, content_type: &'static str, body: String) -> Self {
        let headers = HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static(content_type)),
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ]);
        Self { status, headers, body }
    }

    /// Creates a JSON answer.
    ///
    /// # Errors
    /// [`Problem::internal`] if the value cannot be written as JSON.
    pub fn json(status: u16, value: &impl Serialize) -> Result<Self, Problem> {
        let body = serde_json::to_string(value).map_err(Problem::internal)?;
        Ok(Self::new(status, "application/json", body))
    }

    /// Creates the answer that is one payment, with its entity tag.
    ///
    /// # Errors
    /// As [`Self::json`].
    pub fn payment(status: u16, payment: &PaymentView) -> Result<Self, Problem> {
        Ok(Self::json(status, payment)?.header(ETAG, &payment.etag()))
    }

    /// Creates an HTML page, or a part of one.
    pub fn html(status: u16, html: String) -> Self {
        Self::new(status, "text/html; charset=utf-8", html)
    }

    /// Creates a script or a style whose name changes with its content, so it may be cached for a year.
    pub fn asset(content_type: &'static str, text: &str) -> Self {
        Self::new(200, content_type, text.to_owned()).header(CACHE_CONTROL, "public, max-age=31536000, immutable")
    }

    /// Creates a page for people.
    fn page(text: String) -> Self {
        Self::new(200, "text/plain; charset=utf-8", text)
    }

    /// Adds a header; a value that is invalid in a header is left out.
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }
}

impl From<&Problem> for Answer {
    fn from(problem: &Problem) -> Self {
        let body = serde_json::to_string(problem).unwrap_or_default();
        let answer = Self::new(problem.status(), "application/problem+json", body);
        let answer = match problem.retry_after_seconds() {
            Some(seconds) => answer.header(RETRY_AFTER, &seconds.to_string()),
            None => answer,
        };
        match problem.kind() {
            // RFC 9110, section 15.5.16.
            ProblemKind::UnsupportedMediaType if problem.field() == Some(ENCODING) => {
                answer.header(ACCEPT_ENCODING, "identity")
            }
            // RFC 6750, section 3.
            ProblemKind::TokenRequired => answer.header(WWW_AUTHENTICATE, "Bearer"),
            ProblemKind::Forbidden => answer.header(WWW_AUTHENTICATE, r#"Bearer error="insufficient_scope""#),
            ProblemKind::MethodNotAllowed => answer.header(ALLOW, problem.allowed_methods()),
            _ => answer,
        }
    }
}

/// Answers one request: checks that it may be made, passes it to `handle`, and logs the result once. The page of a problem is
/// answered here.
pub async fn serve<'e, Handled: Future<Output = Result<Answer, Problem>>>(
    event: &'e ApiGatewayV2httpRequest,
    access: &Access,
    handle: impl FnOnce(Request<'e>) -> Handled,
) -> ApiGatewayV2httpResponse {
    if let Some(page) = Request::page(event) {
        return respond(event, Ok(Answer::page(page)));
    }
    let result = match Request::from_event(event, access) {
        // Boxed: without it, a function's whole chain of calls is one type, too deep for the compiler.
        Ok(request) => Box::pin(handle(request)).await,
        Err(problem) => Err(problem),
    };
    respond(event, result)
}

/// The header that names a request, in both directions.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id of a request that a caller can choose, in bytes.
const MAX_REQUEST_ID_BYTES: usize = 64;

/// The id of a request: the caller's, if it has 1 to 64 letters, digits, `.`, `_`, `:` or `-`, else API Gateway's.
fn request_id(event: &ApiGatewayV2httpRequest) -> Option<&str> {
    let plain = |id: &&str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
        (1..=MAX_REQUEST_ID_BYTES).contains(&id.len()) && id.bytes().all(allowed)
    };
    let given = event.headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).filter(plain);
    given.or(event.request_context.request_id.as_deref())
}

/// Turns a result into the response, and writes the request's one log line: ids and the route, never bodies,
/// names or amounts.
fn respond(event: &ApiGatewayV2httpRequest, result: Result<Answer, Problem>) -> ApiGatewayV2httpResponse {
    let context = &event.request_context;
    let (route, gateway_request_id) = (context.route_key.as_deref(), context.request_id.as_deref());
    let request_id = request_id(event);
    let answer = match result {
        Ok(answer) => {
            tracing::info!(route, request_id, gateway_request_id, status = answer.status, "answered");
            answer
        }
        Err(problem) => {
            let (status, kind) = (problem.status(), problem.kind().slug());
            if status >= 500 && problem.kind() != ProblemKind::Closed {
                let causes = problem.causes();
                tracing::error!(route, request_id, gateway_request_id, status, problem = kind, ?causes, "failed");
            } else {
                tracing::info!(route, request_id, gateway_request_id, status, problem = kind, "rejected");
            }
            Answer::from(&problem.for_request(request_id))
        }
    };
    let answer = request_id.into_iter().fold(answer, |answer, id| answer.header(REQUEST_ID, id));
    let mut response = ApiGatewayV2httpResponse::default();
    response.status_code = answer.status.into();
    response.headers = answer.headers;
    response.body = Some(Body::Text(answer.body));
    response
}
