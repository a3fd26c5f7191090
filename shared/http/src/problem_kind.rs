//! The kinds of problem, in the order in which several faults of one request are reported.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

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
    /// The bank takes no creates and amendments of this client at the moment.
    Closed: 503, "closed", "Closed";
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
    /// The amount is above the bank's limit of one payment.
    OverLimit: 422, "over-limit", "Over limit";
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
