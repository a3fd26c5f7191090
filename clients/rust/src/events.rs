//! What the event log has.

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
    /// Where to read on.
    pub next_cursor: String,
    /// Whether more events followed when the page was made.
    pub has_more: bool,
}

/// A new version of a payment. Of `payment.irregular`, only `id`, `type`, `at`, `epoch`, `place` and `why` are certain.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Event {
    /// Its id, always the same.
    pub id: String,
    /// What happened, such as `payment.processed`. Later releases add types.
    pub r#type: String,
    /// When the payment entered the status; of `payment.irregular`, when the change was read.
    pub at: DateTime<Utc>,
    /// The number of this part of the log. A restore of the payments begins the next.
    pub epoch: u64,
    /// The account that pays.
    pub account_id: Option<String>,
    /// The account that gets the money.
    pub payee_account_id: Option<String>,
    /// The payment's id, a UUID.
    pub payment_id: Option<String>,
    /// The payment's version.
    pub version: Option<u64>,
    /// The status before; absent for a new payment.
    pub from: Option<Status>,
    /// The status.
    pub to: Option<Status>,
    /// Who changed the payment's status.
    pub by: Option<Actor>,
    /// When it is due.
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
    /// Why it failed.
    pub failure_reason: Option<String>,
    /// Whether a daily report is to list the settlement.
    pub unreported: Option<bool>,
    /// Where an irregular change is in the table's stream.
    pub place: Option<String>,
    /// What is wrong with an irregular change.
    pub why: Option<String>,
}
