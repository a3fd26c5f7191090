//! Events of the log: one for each version of a payment, and none for anything else.
//!
//! A redrive, a report and the archive do not change the version, so they produce no event. A version that does not
//! follow the one before is an event of its own kind, which names the payment.

use serde::Serialize;

use crate::calendar::instant::UtcSecond;
use crate::log::kind::EventKind;
use crate::payment::forms::Head;
use crate::payment::forms::REDATED;
use crate::payment::payment_id::PaymentId;
use crate::payment::settlement::{Failure, TransactionId};
use crate::payment::slot::DuePayment;
use crate::payment::transition::Status;
use crate::public_actor::PublicActor;
use crate::reference::Reference;

/// The version of the events' form, `v`. A change that a reader must know raises it.
pub const EVENT_FORM: u32 = 1;

/// The seconds from 1970 to 2020.
const SECONDS_TO_2020: i64 = 1_577_836_800;

/// The number of a log: the minute in which it began, counted from the beginning of 2020, or a higher one. So a log
/// that replaces a lost one has another number. A restore ends one log, and begins the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Epoch(u32);

impl Epoch {
    /// The lowest number. Logs that begin now have higher ones.
    pub const FIRST: Self = Self(1);

    /// The epoch that begins at `now`.
    #[must_use]
    pub fn begun_at(now: UtcSecond) -> Self {
        let minutes = (now.as_chrono().timestamp() - SECONDS_TO_2020) / 60;
        Self(u32::try_from(minutes).unwrap_or(0).max(1))
    }

    /// Reads a stored number.
    #[must_use]
    pub const fn from_stored(number: u32) -> Option<Self> {
        if number >= 1 { Some(Self(number)) } else { None }
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }

    /// The next epoch, which begins at `now`.
    #[must_use]
    pub fn next(self, now: UtcSecond) -> Self {
        Self(self.0 + 1).max(Self::begun_at(now))
    }
}

impl std::fmt::Display for Epoch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A version of a payment, as far as the next version's event needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionBefore {
    /// The version.
    pub version: u32,
    /// The status.
    pub status: Status,
    /// The head, if it can be read. An amendment's event has its earlier values.
    pub head: Option<Box<Head>>,
}

/// The meaning of a head's change for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Logged {
    /// No event: no version was added.
    Nothing,
    /// The event of a new version.
    Version(Box<VersionEvent>),
    /// The version does not follow the one before.
    Irregular(IrregularEvent),
}

/// The event of one version of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionEvent {
    before: Option<VersionBefore>,
    head: Head,
}

/// The event of a change that cannot be read, or whose version does not follow the one before:
/// somebody changed the payment by hand, or it is damaged. The payment itself is authoritative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IrregularEvent {
    /// The payment, if its key can be read.
    pub payment: Option<DuePayment>,
    /// The time at which the change was read.
    pub at: UtcSecond,
    /// Its place in the table's stream, which makes the event's id.
    pub place: String,
    /// The fault.
    pub reason: &'static str,
}

impl Logged {
    /// Returns the meaning of a change that led to the head `after`, read at `now` at `place` of the table's stream. A
    /// head that disappears was archived or has expired, which produces no event.
    #[must_use]
    pub fn from_change(before: Option<VersionBefore>, after: &Head, now: UtcSecond, place: &str) -> Self {
        let status = after.state.status();
        let last = before.as_ref().map_or(0, |before| before.version);
        let follows = last.checked_add(1) == Some(after.version);
        let same_status = before.as_ref().is_some_and(|before| before.status == status);
        let reason = if after.version == last {
            if same_status {
                return Self::Nothing;
            }
            "its status changed, but not its version"
        } else if follows && same_status && after.amended.is_none() {
            "its version rose, and neither its status nor an amendment says why"
        } else if follows {
            return Self::Version(Box::new(VersionEvent { before, head: after.clone() }));
        } else {
            "its version does not follow the one before"
        };
        Self::Irregular(IrregularEvent { payment: Some(after.due_payment()), at: now, place: place.to_owned(), reason })
    }
}

impl Logged {
    /// The event's JSON in an epoch, on one line; `None` if there is no event.
    ///
    /// # Errors
    /// No error is known: JSON holds every field.
    pub fn json(&self, epoch: Epoch) -> serde_json::Result<Option<String>> {
        match self {
            Self::Nothing => Ok(None),
            Self::Version(event) => event.json(epoch).map(Some),
            Self::Irregular(event) => event.json(epoch).map(Some),
        }
    }
}

/// The JSON of a version's event, its fields in the documented order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VersionJson<'e> {
    id: String,
    r#type: &'static str,
    at: String,
    epoch: Epoch,
    v: u32,
    account_id: &'e str,
    payee_account_id: &'e str,
    payment_id: String,
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_status: Option<&'static str>,
    status: &'static str,
    by: PublicActor,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_fields: Option<&'e [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<PreviousJson<'e>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    amendment_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduled_for: Option<String>,
    due_at: String,
    due_date: String,
    amount_minor: i64,
    currency: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction_id: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_code: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_reason: Option<&'e str>,
}

/// The values of the changed fields before. Fields that a head does not have are absent, and so is a missing reference.
#[derive(Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct PreviousJson<'e> {
    #[serde(skip_serializing_if = "Option::is_none")]
    payee_account_id: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount_minor: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduled_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<&'e str>,
}

impl<'e> PreviousJson<'e> {
    /// The values of these fields of a head; `None` if it has no value for any.
    fn new(before: &'e Head, changed: &[String]) -> Option<Self> {
        let mut previous = Self::default();
        for field in changed {
            match field.as_str() {
                "payeeAccountId" => previous.payee_account_id = Some(before.payee.as_str()),
                "amountMinor" => previous.amount_minor = Some(before.money.amount.get()),
                "currency" => previous.currency = Some(before.money.currency.to_string()),
                "scheduledFor" => previous.scheduled_for = Some(before.scheduled_for.to_string()),
                REDATED => previous.due_at = Some(before.due_at.to_string()),
                "reference" => previous.reference = before.reference.as_ref().map(Reference::as_str),
                _ => {}
            }
        }
        (previous != Self::default()).then_some(previous)
    }
}

/// The JSON of an irregular change's event.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IrregularJson<'e> {
    id: String,
    r#type: &'static str,
    at: String,
    epoch: Epoch,
    v: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    account_id: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payment_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<String>,
    reason: &'static str,
}

impl VersionEvent {
    fn json(&self, epoch: Epoch) -> serde_json::Result<String> {
        let status = self.head.state.status();
        let from = self.before.as_ref().map(|before| before.status);
        let kind = if from == Some(status) { EventKind::Amended } else { EventKind::from_status(status) };
        let before = self.before.as_ref().and_then(|before| before.head.as_deref());
        version_json(&self.head, epoch, kind, (from, before))
    }
}

/// The JSON of an event of this kind for a payment's version. Its id consists of epoch, payment and version.
pub(super) fn version_json(
    head: &Head,
    epoch: Epoch,
    kind: EventKind,
    (from, before): (Option<Status>, Option<&Head>),
) -> serde_json::Result<String> {
    let (status, version) = (head.state.status(), head.version);
    let (at, by) = head.last_change();
    let amended = head.amended.as_ref().filter(|_| head.moved.is_empty());
    serde_json::to_string(&VersionJson {
        id: version_id(epoch, head.payment_id, version),
        r#type: kind.as_str(),
        at: at.to_string(),
        epoch,
        v: EVENT_FORM,
        account_id: head.account.as_str(),
        payee_account_id: head.payee.as_str(),
        payment_id: head.payment_id.to_string(),
        version,
        previous_status: from.map(Status::as_str),
        status: status.as_str(),
        by: by.into(),
        changed_fields: amended.map(|amended| amended.changed.as_slice()),
        previous: amended.zip(before).and_then(|(amended, before)| PreviousJson::new(before, &amended.changed)),
        amendment_id: amended.and(head.amendment).map(|name| name.id.to_string()),
        scheduled_for: amended.map(|_| head.scheduled_for.to_string()),
        due_at: head.due_at.to_string(),
        due_date: head.due_date.to_string(),
        amount_minor: head.money.amount.get(),
        currency: head.money.currency.to_string(),
        reference: head.reference.as_ref().map(Reference::as_str),
        transaction_id: head.transaction_id().map(TransactionId::as_str),
        failure_code: head.failure().map(|failure| failure.code().as_str()),
        failure_reason: head.failure().map(Failure::reason),
    })
}

pub(super) fn version_id(epoch: Epoch, payment: PaymentId, version: u32) -> String {
    format!("{epoch}-{payment}-{version}")
}

impl IrregularEvent {
    fn json(&self, epoch: Epoch) -> serde_json::Result<String> {
        let payment = self.payment.as_ref();
        serde_json::to_string(&IrregularJson {
            id: format!("{epoch}-irregular-{}", self.place),
            r#type: EventKind::Irregular.as_str(),
            at: self.at.to_string(),
            epoch,
            v: EVENT_FORM,
            account_id: payment.map(|payment| payment.account.as_str()),
            payment_id: payment.map(|payment| payment.payment_id.to_string()),
            due_at: payment.map(|payment| payment.due_at.to_string()),
            reason: self.reason,
        })
    }
}

#[cfg(test)]
mod tests;
