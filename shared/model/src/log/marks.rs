//! Events about the log itself: its gaps, and the losses of a restore.

use serde::Serialize;

use crate::calendar::instant::UtcSecond;
use crate::log::event::{EVENT_FORM, Epoch, version_id, version_json};
use crate::log::kind::EventKind;
use crate::payment::forms::Head;
use crate::payment::slot::DuePayment;

/// The event of a gap: events of earlier changes may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GapEvent {
    /// The time at which the gap was noticed.
    pub at: UtcSecond,
    /// The start of the gap, if it is known.
    pub since: Option<UtcSecond>,
    /// The end of the gap.
    pub until: UtcSecond,
    /// The cause of the gap.
    pub reason: &'static str,
}

/// The JSON of a gap's event.
#[derive(Serialize)]
struct GapJson {
    id: String,
    r#type: &'static str,
    at: String,
    epoch: Epoch,
    v: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    until: String,
    reason: &'static str,
}

impl GapEvent {
    /// The id of a gap's event in the segment of this number.
    #[must_use]
    pub fn id(epoch: Epoch, number: u64) -> String {
        format!("{epoch}-gap-{number}")
    }

    /// The event's JSON in the segment of this number.
    ///
    /// # Errors
    /// No error is known: JSON holds every field.
    pub fn json(&self, epoch: Epoch, number: u64) -> serde_json::Result<String> {
        serde_json::to_string(&GapJson {
            id: Self::id(epoch, number),
            r#type: EventKind::Gap.as_str(),
            at: self.at.to_string(),
            epoch,
            v: EVENT_FORM,
            since: self.since.map(|since| since.to_string()),
            until: self.until.to_string(),
            reason: self.reason,
        })
    }
}

/// The first event of an epoch that a restore began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRestoredEvent {
    /// The start of the epoch.
    pub at: UtcSecond,
    /// The instant to which the payments were restored, if they were, and not the log alone.
    pub restored_to: Option<UtcSecond>,
    /// The end of the epoch before, as a cursor.
    pub end_cursor: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogRestoredJson<'e> {
    id: String,
    r#type: &'static str,
    at: String,
    epoch: Epoch,
    v: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    restored_to: Option<String>,
    end_cursor: &'e str,
}

impl LogRestoredEvent {
    /// The event's JSON in an epoch.
    ///
    /// # Errors
    /// No error is known: JSON holds every field.
    pub fn json(&self, epoch: Epoch) -> serde_json::Result<String> {
        serde_json::to_string(&LogRestoredJson {
            id: format!("{epoch}-restored"),
            r#type: EventKind::LogRestored.as_str(),
            at: self.at.to_string(),
            epoch,
            v: EVENT_FORM,
            restored_to: self.restored_to.map(|instant| instant.to_string()),
            end_cursor: &self.end_cursor,
        })
    }
}

/// The event of a payment whose version is lower after a restore than the log said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentRestoredEvent {
    /// As it is now.
    Head(Box<Head>),
    /// The payment is missing in all tables.
    Missing {
        /// The payment, as the log named it.
        payment: DuePayment,
        /// The account that is paid, if the log names it.
        payee: Option<String>,
        /// The time at which it was found missing.
        at: UtcSecond,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MissingJson<'e> {
    id: String,
    r#type: &'static str,
    at: String,
    epoch: Epoch,
    v: u32,
    account_id: &'e str,
    #[serde(skip_serializing_if = "Option::is_none")]
    payee_account_id: Option<&'e str>,
    payment_id: String,
    version: u32,
    due_at: String,
}

impl PaymentRestoredEvent {
    /// The event's id. A missing payment has the version 0.
    #[must_use]
    pub fn id(&self, epoch: Epoch) -> String {
        match self {
            Self::Head(head) => version_id(epoch, head.payment_id, head.version),
            Self::Missing { payment, .. } => version_id(epoch, payment.payment_id, 0),
        }
    }

    /// The event's JSON in an epoch.
    ///
    /// # Errors
    /// No error is known: JSON holds every field.
    pub fn json(&self, epoch: Epoch) -> serde_json::Result<String> {
        const KIND: EventKind = EventKind::PaymentRestored;
        match self {
            Self::Head(head) => version_json(head, epoch, KIND, (None, None)),
            Self::Missing { payment, payee, at } => serde_json::to_string(&MissingJson {
                id: self.id(epoch),
                r#type: KIND.as_str(),
                at: at.to_string(),
                epoch,
                v: EVENT_FORM,
                account_id: payment.account.as_str(),
                payee_account_id: payee.as_deref(),
                payment_id: payment.payment_id.to_string(),
                version: 0,
                due_at: payment.due_at.to_string(),
            }),
        }
    }
}
