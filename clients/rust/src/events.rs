//! The events of the log.

use chrono::{DateTime, NaiveDate, Utc};
use serde::Deserialize;

use crate::model::Actor;
use crate::values::Status;

/// A page of the event log.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EventPage {
    /// The events, in order.
    pub events: Vec<Event>,
    /// The cursor of the next page.
    pub next_cursor: String,
    /// Whether more events followed when the page was made.
    pub has_more: bool,
}

/// A new version of a payment, or an event about the log. Of each, only `id`, `type`, `at`, `epoch` and `v` are certain.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Event {
    /// Its id, always the same.
    pub id: String,
    /// The type, such as `payment.processed`. Later releases add types.
    pub r#type: String,
    /// The time at which the payment entered the status or was amended; of `payment.irregular`, at
    /// which the change was read; of an event about the log, at which it was written.
    pub at: DateTime<Utc>,
    /// The number of this part of the log. A restore begins the next.
    pub epoch: u64,
    /// The version of the event's form: 1.
    pub v: u64,
    /// The account that pays.
    pub account_id: Option<String>,
    /// The account that gets the money.
    pub payee_account_id: Option<String>,
    /// The payment's id, a UUID.
    pub payment_id: Option<String>,
    /// The payment's version; 0 if a restore left the payment out.
    pub version: Option<u64>,
    /// The status before; absent for a new payment.
    pub previous_status: Option<Status>,
    /// The status.
    pub status: Option<Status>,
    /// The actor that changed the payment's status.
    pub by: Option<Actor>,
    /// The fields that an amendment changed, by the names that the API gives them; `dueAt` alone if the bank moved the payment.
    pub changed_fields: Option<Vec<String>>,
    /// The old values of the changed fields.
    pub previous: Option<PreviousFields>,
    /// The amendment's id, a UUID.
    pub amendment_id: Option<String>,
    /// The date or the instant that the client now wants, as it was sent.
    pub scheduled_for: Option<String>,
    /// The time at which it is due.
    pub due_at: Option<DateTime<Utc>>,
    /// The bank's date on which it is due.
    pub due_date: Option<NaiveDate>,
    /// The amount in minor units.
    pub amount_minor: Option<i64>,
    /// The currency: three capital letters.
    pub currency: Option<String>,
    /// The text for the payee.
    pub reference: Option<String>,
    /// The transaction service's id, once it is processed.
    pub transaction_id: Option<String>,
    /// The reason of its failure: a code of ISO 20022. Later releases list more.
    pub failure_code: Option<String>,
    /// The reason of its failure, in the bank's words.
    pub failure_reason: Option<String>,
    /// The fault of an irregular change, or the cause of a gap.
    pub reason: Option<String>,
    /// The time from which changes may be missing (`log.gap`), if it is known.
    pub since: Option<DateTime<Utc>>,
    /// The time until which changes may be missing (`log.gap`).
    pub until: Option<DateTime<Utc>>,
    /// The instant to which the payments were restored (`log.restored`), unless only the log itself was.
    pub restored_to: Option<DateTime<Utc>>,
    /// The end of the epoch before, as a cursor (`log.restored`).
    pub end_cursor: Option<String>,
}

/// The old values of the fields that an amendment changed. Unchanged fields are absent, and so is a missing reference.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PreviousFields {
    /// The account that got the money.
    pub payee_account_id: Option<String>,
    /// The amount in minor units.
    pub amount_minor: Option<i64>,
    /// The currency: three capital letters.
    pub currency: Option<String>,
    /// The date or the instant that the client wanted before, as it was sent.
    pub scheduled_for: Option<String>,
    /// The time at which it was due, if the bank moved it.
    pub due_at: Option<DateTime<Utc>>,
    /// The text for the payee.
    pub reference: Option<String>,
}
