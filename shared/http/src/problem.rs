//! Every way to say no: RFC 9457 problem details with a stable type, a detail that says what to
//! fix, and nothing internal.

use std::error::Error;

use http::header::{ALLOW, RETRY_AFTER, WWW_AUTHENTICATE};
use payments_model::{Outage, OutageKind, causes};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::Answer;

/// Where the types live. They are identifiers, not pages; `docs/problems.md` explains each.
pub const TYPE_BASE: &str = "https://bank-payments.example/problems/";

/// How long a client should wait before it repeats a call that met a throttle or an outage.
const RETRY_AFTER_SECONDS: &str = "1";

/// The kinds of problem, in the order in which several faults of one request are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The path is none of the API's.
    NoSuchRoute,
    /// The path does not take this method.
    MethodNotAllowed,
    /// No token came with the request.
    TokenRequired,
    /// The token is not for this route.
    Forbidden,
    /// The body is not `application/json`.
    UnsupportedMediaType,
    /// The body is longer than its route takes.
    BodyTooLarge,
    /// A path or query parameter is malformed or unknown.
    InvalidParameter,
    /// The cursor was not made by this list.
    InvalidCursor,
    /// The `Idempotency-Key` is missing or malformed.
    InvalidIdempotencyKey,
    /// The body is not JSON.
    NotJson,
    /// A field is unknown, missing, given twice or of the wrong type.
    InvalidShape,
    /// The batch has no entries, or too many.
    InvalidBatchSize,
    /// The payee is malformed, or the payer.
    InvalidPayee,
    /// The amount is not a positive whole number in range.
    InvalidAmount,
    /// The currency is none of ISO 4217's.
    InvalidCurrency,
    /// The date is malformed or does not exist.
    InvalidDate,
    /// The idempotency key was used for another payment.
    IdempotencyKeyReused,
    /// The payment with its data is larger than a payment may be.
    PaymentTooLarge,
    /// The date has passed.
    DatePassed,
    /// The date is further ahead than the bank takes payments.
    DateBeyondHorizon,
    /// There is no such payment in this account.
    NoSuchPayment,
    /// The payment is past the status in which it could be cancelled.
    NotCancellable,
    /// Too much at once; the same call succeeds later.
    Throttled,
    /// Something outside does not answer; the same call succeeds later.
    Unavailable,
    /// A fault of ours.
    Internal,
}

impl Kind {
    /// Every kind, for the tests that hold documents against the code.
    pub const ALL: [Self; 25] = [
        Self::NoSuchRoute,
        Self::MethodNotAllowed,
        Self::TokenRequired,
        Self::Forbidden,
        Self::UnsupportedMediaType,
        Self::BodyTooLarge,
        Self::InvalidParameter,
        Self::InvalidCursor,
        Self::InvalidIdempotencyKey,
        Self::NotJson,
        Self::InvalidShape,
        Self::InvalidBatchSize,
        Self::InvalidPayee,
        Self::InvalidAmount,
        Self::InvalidCurrency,
        Self::InvalidDate,
        Self::IdempotencyKeyReused,
        Self::PaymentTooLarge,
        Self::DatePassed,
        Self::DateBeyondHorizon,
        Self::NoSuchPayment,
        Self::NotCancellable,
        Self::Throttled,
        Self::Unavailable,
        Self::Internal,
    ];

    /// The HTTP status, the last part of the type, and the title.
    #[must_use]
    pub fn facts(self) -> (u16, &'static str, &'static str) {
        match self {
            Self::NoSuchRoute => (404, "no-such-route", "No such route"),
            Self::MethodNotAllowed => (405, "method-not-allowed", "Method not allowed"),
            Self::TokenRequired => (401, "token-required", "Token required"),
            Self::Forbidden => (403, "forbidden", "Forbidden"),
            Self::UnsupportedMediaType => (415, "unsupported-media-type", "Unsupported media type"),
            Self::BodyTooLarge => (413, "body-too-large", "Body too large"),
            Self::InvalidParameter => (400, "invalid-parameter", "Invalid parameter"),
            Self::InvalidCursor => (400, "invalid-cursor", "Invalid cursor"),
            Self::InvalidIdempotencyKey => (400, "invalid-idempotency-key", "Invalid idempotency key"),
            Self::NotJson => (400, "not-json", "Not JSON"),
            Self::InvalidShape => (400, "invalid-shape", "Invalid shape"),
            Self::InvalidBatchSize => (400, "invalid-batch-size", "Invalid batch size"),
            Self::InvalidPayee => (422, "invalid-payee", "Invalid payee"),
            Self::InvalidAmount => (422, "invalid-amount", "Invalid amount"),
            Self::InvalidCurrency => (422, "invalid-currency", "Invalid currency"),
            Self::InvalidDate => (422, "invalid-date", "Invalid date"),
            Self::PaymentTooLarge => (413, "payment-too-large", "Payment too large"),
            Self::DatePassed => (422, "date-passed", "Date passed"),
            Self::DateBeyondHorizon => (422, "date-beyond-horizon", "Date beyond horizon"),
            Self::IdempotencyKeyReused => (422, "idempotency-key-reused", "Idempotency key reused"),
            Self::NoSuchPayment => (404, "no-such-payment", "No such payment"),
            Self::NotCancellable => (409, "not-cancellable", "Not cancellable"),
            Self::Throttled => (503, "throttled", "Throttled"),
            Self::Unavailable => (503, "unavailable", "Unavailable"),
            Self::Internal => (500, "internal", "Internal error"),
        }
    }
}

/// A refusal on its way to the client; boxed, so that results stay small.
#[derive(Debug)]
pub struct Problem(Box<Parts>);

#[derive(Debug)]
struct Parts {
    kind: Kind,
    detail: String,
    field: Option<String>,
    fields: Vec<&'static str>,
    excess_bytes: Option<usize>,
    allow: Option<String>,
    cause: Option<Box<dyn Error + Send + Sync>>,
}

/// A problem as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'p> {
    r#type: String,
    title: &'static str,
    status: u16,
    detail: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'p str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    fields: &'p [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    excess_bytes: Option<usize>,
}

impl Problem {
    /// A problem with what the client should do about it.
    #[must_use]
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        let (field, fields, excess_bytes, allow, cause) = (None, Vec::new(), None, None, None);
        Self(Box::new(Parts { kind, detail, field, fields, excess_bytes, allow, cause }))
    }

    /// A failed call to something outside. The client learns its kind, the log its cause.
    #[must_use]
    pub fn outage(error: impl Outage) -> Self {
        let (kind, detail) = match error.kind() {
            OutageKind::Throttled => {
                (Kind::Throttled, "Too much is going on just now; repeat the request a little later.")
            }
            OutageKind::Unavailable => {
                (Kind::Unavailable, "A part of the bank does not answer just now; repeat the request a little later.")
            }
            OutageKind::Broken => return Self::internal(error),
        };
        Self::new(kind, detail).because(error)
    }

    /// No such payment in this account, for this token. One sentence for all that is not there, and for
    /// all that the token does not reach, so that nobody can tell the two apart.
    #[must_use]
    pub fn no_such_payment() -> Self {
        Self::new(Kind::NoSuchPayment, "There is no such payment, or this token does not reach its account.")
    }

    /// What there was no time for: nothing was tried.
    #[must_use]
    pub fn out_of_time() -> Self {
        Self::new(Kind::Unavailable, "There was no time left for this payment; send it again.")
    }

    /// A fault of ours.
    #[must_use]
    pub fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let detail = "Something went wrong on the bank's side; repeating the request will not help.";
        Self::new(Kind::Internal, detail).because(cause)
    }

    fn because(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// The same, about one field or parameter.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.0.field = Some(field.into());
        self
    }

    /// The same, about several fields.
    #[must_use]
    pub fn at_all(mut self, fields: Vec<&'static str>) -> Self {
        self.0.fields = fields;
        self
    }

    /// The same, with the number of bytes that have to go.
    #[must_use]
    pub fn excess(mut self, bytes: usize) -> Self {
        self.0.excess_bytes = Some(bytes);
        self
    }

    /// The same, with the methods that would do.
    #[must_use]
    pub fn allowing(mut self, methods: String) -> Self {
        self.0.allow = Some(methods);
        self
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.0.kind.facts().0
    }

    /// What lies behind it, innermost last, for the log only.
    #[must_use]
    pub fn causes(&self) -> Vec<String> {
        self.0.cause.as_deref().map(|cause| causes(cause)).unwrap_or_default()
    }

    /// Logs an entry of a batch that failed for a reason that is not the client's.
    pub fn log(&self, entry: usize) {
        let (status, kind, _) = self.0.kind.facts();
        tracing::error!(entry, status, problem = kind, causes = ?self.causes(), "failed");
    }

    /// The problem as the JSON of its own answer or of a batch's entry.
    ///
    /// # Errors
    /// Never in practice: every part is a plain string or number.
    pub fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        let (status, slug, title) = self.0.kind.facts();
        serde_json::value::to_raw_value(&Body {
            r#type: format!("{TYPE_BASE}{slug}"),
            title,
            status,
            detail: &self.0.detail,
            field: self.0.field.as_deref(),
            fields: &self.0.fields,
            excess_bytes: self.0.excess_bytes,
        })
    }

    /// The whole answer.
    #[must_use]
    pub fn answer(&self) -> Answer {
        let body = self.json().map_or_else(|_| String::new(), |json| json.get().to_owned());
        let mut answer = Answer::new(self.status(), "application/problem+json", body);
        if matches!(self.0.kind, Kind::Throttled | Kind::Unavailable) {
            answer = answer.header(RETRY_AFTER, RETRY_AFTER_SECONDS);
        }
        // RFC 6750, section 3.
        match self.0.kind {
            Kind::TokenRequired => answer = answer.header(WWW_AUTHENTICATE, "Bearer"),
            Kind::Forbidden => answer = answer.header(WWW_AUTHENTICATE, r#"Bearer error="insufficient_scope""#),
            _ => {}
        }
        if let Some(methods) = &self.0.allow {
            answer = answer.header(ALLOW, methods);
        }
        answer
    }
}
