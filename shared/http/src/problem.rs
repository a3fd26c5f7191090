//! Problems: RFC 9457 problem details with a stable type and a detail that says what to fix.

use std::error::Error;

use payments_model::{Outage, OutageKind, causes};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::echo::{self, echoed};
use crate::pointer::Pointer;

/// Time that a client should wait before it repeats a request that was throttled or failed in an outage.
const RETRY_AFTER_SECONDS: u32 = 1;

/// The most faults of a body that its problem shows.
pub const MAX_ERRORS: usize = 10;

/// The prefix of the types: a name that is the same at every bank, whatever its host.
pub const TYPE_BASE: &str = "urn:scheduled-payments:problem:";

/// The prefix of the pages' paths, on the API's own server.
pub(crate) const PAGES: &str = "/problems/";

/// Defines [`ProblemKind`]: each kind with its status, the last part of its type, and its title.
macro_rules! kinds {
    ($($(#[$doc:meta])+ $kind:ident: $status:literal, $slug:literal, $title:literal;)+) => {
        /// The kinds of problem, in the order in which several faults of one request are reported.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ProblemKind {
            $($(#[$doc])+ $kind,)+
        }

        impl ProblemKind {
            /// Every kind, for the tests that compare documents with the code.
            pub const ALL: [Self; [$($slug),+].len()] = [$(Self::$kind),+];

            /// The HTTP status.
            pub const fn status(self) -> u16 {
                match self { $(Self::$kind => $status,)+ }
            }

            /// The last part of the type.
            pub const fn slug(self) -> &'static str {
                match self { $(Self::$kind => $slug,)+ }
            }

            /// The title.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$kind => $title,)+ }
            }
        }
    };
}

kinds! {
    /// The API has no route at this path.
    NoSuchRoute: 404, "no-such-route", "No such route";
    /// The path exists, but not with this method.
    MethodNotAllowed: 405, "method-not-allowed", "Method not allowed";
    /// The request has no token.
    TokenRequired: 401, "token-required", "Token required";
    /// The token does not allow this route.
    Forbidden: 403, "forbidden", "Forbidden";
    /// The body is not `application/json`, or is encoded.
    UnsupportedMediaType: 415, "unsupported-media-type", "Unsupported media type";
    /// The body is longer than its route allows.
    BodyTooLarge: 413, "body-too-large", "Body too large";
    /// A path or query parameter is malformed or unknown.
    InvalidParameter: 400, "invalid-parameter", "Invalid parameter";
    /// The cursor cannot be read, or belongs to another list.
    InvalidCursor: 400, "invalid-cursor", "Invalid cursor";
    /// The `Idempotency-Key` is missing or malformed.
    InvalidIdempotencyKey: 400, "invalid-idempotency-key", "Invalid idempotency key";
    /// The body is not JSON.
    NotJson: 400, "not-json", "Not JSON";
    /// A field is unknown, missing, repeated or of the wrong type.
    InvalidShape: 400, "invalid-shape", "Invalid shape";
    /// The batch has no entries, or too many.
    InvalidBatchSize: 400, "invalid-batch-size", "Invalid batch size";
    /// The payee is malformed, or is the payer.
    InvalidPayee: 422, "invalid-payee", "Invalid payee";
    /// The amount is not a positive whole number in range.
    InvalidAmount: 422, "invalid-amount", "Invalid amount";
    /// The currency is not on ISO 4217's current list, or payments are not made in it.
    InvalidCurrency: 422, "invalid-currency", "Invalid currency";
    /// The date is malformed or does not exist.
    InvalidDate: 422, "invalid-date", "Invalid date";
    /// The date rule is unknown, or the bank has no calendars.
    InvalidDateRule: 422, "invalid-date-rule", "Invalid date rule";
    /// The reference is empty, too long, or has a character that schemes do not carry.
    InvalidReference: 422, "invalid-reference", "Invalid reference";
    /// Webhooks are not sent to this URL.
    InvalidUrl: 422, "invalid-url", "Invalid URL";
    /// A list of types or accounts is empty or too long, or has an invalid element.
    InvalidFilter: 422, "invalid-filter", "Invalid filter";
    /// The idempotency key was used for another payment.
    IdempotencyKeyReused: 422, "idempotency-key-reused", "Idempotency key reused";
    /// The payment with its data is larger than a payment may be.
    PaymentTooLarge: 413, "payment-too-large", "Payment too large";
    /// The date has passed.
    DatePassed: 422, "date-passed", "Date passed";
    /// The date is too far ahead.
    DateBeyondHorizon: 422, "date-beyond-horizon", "Date beyond horizon";
    /// The date is closed or its cut-off has passed, and the rule is to refuse it.
    DateClosed: 422, "date-closed", "Date closed";
    /// The calendar of the currency does not cover the date.
    DateBeyondCalendar: 422, "date-beyond-calendar", "Date beyond calendar";
    /// The account has no such payment.
    NoSuchPayment: 404, "no-such-payment", "No such payment";
    /// The bank uses no such calendar.
    NoSuchCalendar: 404, "no-such-calendar", "No such calendar";
    /// The payment is no longer scheduled, so it cannot be cancelled.
    NotCancellable: 409, "not-cancellable", "Not cancellable";
    /// The request names no version of the payment that it changes.
    PreconditionRequired: 428, "precondition-required", "Precondition required";
    /// `If-Match` is not the entity tag of one version.
    InvalidPrecondition: 400, "invalid-precondition", "Invalid precondition";
    /// The payment is no longer scheduled, so it cannot be amended.
    NotAmendable: 409, "not-amendable", "Not amendable";
    /// The payment was amended as often as it can be.
    TooManyAmendments: 409, "too-many-amendments", "Too many amendments";
    /// The payment has another version than the request names.
    VersionChanged: 412, "version-changed", "Version changed";
    /// There is no webhook endpoint with this id.
    NoSuchEndpoint: 404, "no-such-endpoint", "No such endpoint";
    /// The bank has as many endpoints as it can have.
    TooManyEndpoints: 409, "too-many-endpoints", "Too many endpoints";
    /// The endpoint does not fail at this event.
    NotBlocking: 409, "not-blocking", "Not blocking";
    /// The endpoint's secret has another generation.
    WrongGeneration: 409, "wrong-generation", "Wrong generation";
    /// The events after the cursor are not kept, or its part of the log was replaced.
    CursorGone: 410, "cursor-gone", "Cursor gone";
    /// The service is throttled; the same request succeeds later.
    Throttled: 503, "throttled", "Throttled";
    /// A service that this one needs does not answer; the same request succeeds later.
    Unavailable: 503, "unavailable", "Unavailable";
    /// A fault in this service.
    Internal: 500, "internal", "Internal error";
}

impl ProblemKind {
    /// The type.
    pub(crate) fn type_of(self) -> String {
        format!("{TYPE_BASE}{}", self.slug())
    }

    /// The path of the page about it.
    pub(crate) fn page(self) -> String {
        format!("{PAGES}{}", self.slug())
    }
}

impl Serialize for ProblemKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("type", &self.type_of())?;
        map.serialize_entry("title", self.title())?;
        map.serialize_entry("status", &self.status())?;
        map.serialize_entry("help", &self.page())?;
        map.end()
    }
}

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
        let is_for_later = matches!(kind, ProblemKind::Throttled | ProblemKind::Unavailable);
        let retry_after_seconds = is_for_later.then_some(RETRY_AFTER_SECONDS);
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
