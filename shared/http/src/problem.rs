//! Problems: RFC 9457 problem details with a stable type and a detail that says what to fix.

use std::error::Error;

use payments_model::{Outage, OutageKind, causes};
use serde::Serialize;

use crate::echo::{self, echoed};
use crate::pointer::Pointer;
pub use crate::problem_kind::{ProblemKind, TYPE_BASE};

/// Time that a client should wait before it repeats a request that was throttled or failed in an outage.
const RETRY_AFTER_SECONDS: u32 = 1;

/// Time that a refused client should wait. Only a deployment ends the refusal, and the clients' retries give up at once.
const CLOSED_SECONDS: u32 = 300;

/// The most faults of a body that its problem shows.
pub const MAX_ERRORS: usize = 10;

/// A problem: its JSON is for the client, its cause for the log. Boxed, to keep results small.
#[derive(Debug, Serialize)]
pub struct Problem(Box<Parts>);

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Parts {
    #[serde(flatten)]
    kind: ProblemKind,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<BodyFault>,
    #[serde(skip_serializing_if = "Option::is_none")]
    excess_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(skip)]
    allow: String,
    #[serde(skip)]
    cause: Option<Box<dyn Error + Send + Sync>>,
}

/// One of the faults of a body.
#[derive(Debug, Serialize)]
struct BodyFault {
    /// The place, as a JSON Pointer.
    pointer: String,
    /// The type of the problem, if it were the only one.
    #[serde(rename = "type")]
    kind: String,
    detail: String,
}

impl Problem {
    /// Creates a problem; `detail` tells the client what to do.
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        let field = None;
        let fields = Vec::new();
        let errors = Vec::new();
        let excess_bytes = None;
        let current_version = None;
        let oldest_cursor = None;
        let request_id = None;
        let allow = String::new();
        let cause = None;
        let retry_after_seconds = match (kind, kind.status()) {
            (ProblemKind::Closed, _) => Some(CLOSED_SECONDS),
            (_, 429 | 503) => Some(RETRY_AFTER_SECONDS),
            _ => None,
        };
        let detail = echo::detail(detail.into());
        Self(Box::new(Parts {
            kind,
            detail,
            field,
            fields,
            errors,
            excess_bytes,
            current_version,
            oldest_cursor,
            retry_after_seconds,
            request_id,
            allow,
            cause,
        }))
    }

    /// The problem of a body, or of a batch's entry, with all of these faults: the first in the
    /// order of [`ProblemKind`], whose `errors` list each of them, up to [`MAX_ERRORS`].
    #[must_use]
    pub fn for_body(pointer: &Pointer, mut faults: Vec<Self>) -> Self {
        faults.sort_by_key(Self::kind);
        faults.truncate(MAX_ERRORS);
        let error = |fault: &Self| BodyFault {
            pointer: fault.field().map_or_else(|| pointer.clone(), |name| pointer.field(name)).to_string(),
            kind: fault.kind().type_of(),
            detail: fault.0.detail.clone(),
        };
        let errors = faults.iter().map(error).collect();
        let mut first =
            faults.into_iter().next().unwrap_or_else(|| Self::internal("a body without faults is at fault"));
        first.0.errors = errors;
        first
    }

    /// A payment that does not exist in this account, or is out of this token's reach. Both cases share one
    /// text, so that a client cannot tell them apart.
    pub fn no_such_payment() -> Self {
        let detail =
            "The payment does not exist, or this token has no access to its account; check the ids and the token.";
        Self::new(ProblemKind::NoSuchPayment, detail)
    }

    /// A create or an amendment of a client that the bank refuses.
    pub fn closed() -> Self {
        let detail = "The bank takes no creates, batches and amendments from this client at the moment; cancels and reads work. Ask \
                      the bank, then send the same request again.";
        Self::new(ProblemKind::Closed, detail)
    }

    /// A batch's entry that was not tried, because the batch's time was over.
    pub fn out_of_time() -> Self {
        Self::new(ProblemKind::Unavailable, "The batch ran out of time before this payment; send it again.")
    }

    /// A request whose time was over before its work, or that conflicted with a change of the same payment.
    pub fn repeat() -> Self {
        Self::new(ProblemKind::Unavailable, "The request ran out of time, or met another one; repeat it.")
    }

    /// A route that belongs to another function. Only a wrong template gets here.
    pub fn wrong_function() -> Self {
        Self::new(ProblemKind::NoSuchRoute, "This function does not answer this route.")
    }

    /// A fault in this service.
    pub fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let detail = "The service failed; report this with the request's id, which the X-Request-Id header names. A retry \
                      is safe, but unlikely to succeed.";
        Self::new(ProblemKind::Internal, detail).because(cause)
    }

    fn because(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// Names the field, parameter or header at fault.
    pub fn at(mut self, field: &str) -> Self {
        self.0.field = Some(echoed(field).into_owned());
        self
    }

    /// Names the request.
    pub(crate) fn for_request(mut self, id: Option<&str>) -> Self {
        self.0.request_id = id.map(str::to_owned);
        self
    }

    /// Names several fields.
    pub fn at_all(mut self, fields: Vec<&'static str>) -> Self {
        self.0.fields = fields;
        self
    }

    /// Adds the number of bytes over the limit.
    pub fn excess(mut self, bytes: usize) -> Self {
        self.0.excess_bytes = Some(bytes);
        self
    }

    /// Adds the version that the payment has.
    pub fn current_version(mut self, version: u32) -> Self {
        self.0.current_version = Some(version);
        self
    }

    /// Adds the oldest place of the log that is kept.
    pub fn oldest_cursor(mut self, cursor: String) -> Self {
        self.0.oldest_cursor = Some(cursor);
        self
    }

    /// Adds the methods that the path allows.
    pub(crate) fn allowing(mut self, methods: String) -> Self {
        self.0.allow = methods;
        self
    }

    /// The methods that the path allows.
    pub(crate) fn allowed_methods(&self) -> &str {
        &self.0.allow
    }

    /// The same problem in other words.
    #[must_use]
    pub fn saying(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = echo::detail(detail.into());
        self
    }

    /// The kind.
    pub fn kind(&self) -> ProblemKind {
        self.0.kind
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.0.kind.status()
    }

    /// The instruction to the client.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The field, parameter or header at fault.
    pub(crate) fn field(&self) -> Option<&str> {
        self.0.field.as_deref()
    }

    /// The seconds after which the same request may succeed, if it may.
    pub(crate) fn retry_after_seconds(&self) -> Option<u32> {
        self.0.retry_after_seconds
    }

    /// The cause and its own causes, outermost first, for the log only.
    pub(crate) fn causes(&self) -> Vec<String> {
        self.0.cause.as_deref().map(|cause| causes(cause)).unwrap_or_default()
    }

    /// Logs a failed entry of a batch.
    pub fn log(&self, entry: usize) {
        let (status, problem) = (self.status(), self.kind().slug());
        tracing::error!(entry, status, problem, causes = ?self.causes(), "an entry of a batch failed");
    }
}

/// A failed call to another service. The client gets the kind, the log the cause.
impl<E: Outage> From<E> for Problem {
    fn from(error: E) -> Self {
        let (kind, detail) = match error.kind() {
            OutageKind::Throttled => {
                (ProblemKind::Throttled, "The service has too much work at the moment; repeat the request later.")
            }
            OutageKind::Unavailable => (
                ProblemKind::Unavailable,
                "Part of the service does not answer at the moment; repeat the request later.",
            ),
            OutageKind::Broken => return Self::internal(error),
        };
        Self::new(kind, detail).because(error)
    }
}
