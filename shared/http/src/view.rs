//! The JSON of payments and counts.

use std::collections::BTreeMap;

use metrique_writer::Entry;
use payments_model::{
    DateMove, DateRule, DayCounts, Details, Head, Instruction, PaymentData, PaymentId, PublicActor, SealedData, Status,
    TrailEntry,
};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::problem::Problem;

/// A payment's JSON, its fields in the documented order.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentView {
    payment_id: String,
    account_id: String,
    payee_account_id: String,
    amount_minor: i64,
    currency: String,
    scheduled_for: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    date_rule: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
    due_at: String,
    due_date: String,
    #[serde(flatten)]
    moved: MoveView,
    status: &'static str,
    version: u32,
    created_at: String,
    updated_at: String,
    trail: Vec<TrailView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    settled_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
}

/// The reason why a payment is not due at the time that its client asked for, and the calendar that decided.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct MoveView {
    #[serde(skip_serializing_if = "Option::is_none")]
    move_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calendar_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calendar_version: Option<String>,
}

impl MoveView {
    fn new(details: &Details) -> Self {
        let Some(DateMove { reason, calendar }) = &details.moved else { return Self::default() };
        let calendar = calendar.as_ref();
        Self {
            move_reason: Some(reason.as_str()),
            calendar_id: calendar.map(|calendar| calendar.id().to_owned()),
            calendar_version: calendar.map(|calendar| calendar.version().to_owned()),
        }
    }
}

/// The payments that a list left out, because their items cannot be read: a member of the list, and a metric.
#[derive(Debug, Default, Serialize, Entry)]
#[serde(rename_all = "camelCase")]
pub struct Unreadable {
    #[entry(name = "PaymentsUnreadable")]
    count: u64,
    #[entry(ignore)]
    payment_ids: Vec<String>,
}

impl Unreadable {
    /// Counts a payment; its id is known unless its key cannot be read.
    pub fn add(&mut self, payment_id: Option<PaymentId>) {
        self.count += 1;
        self.payment_ids.extend(payment_id.map(|payment_id| payment_id.to_string()));
    }

    /// Whether the list is complete.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The changes of webhook endpoints, as a metric.
#[derive(Debug, Entry)]
#[entry(rename_all = "PascalCase")]
pub struct EndpointsChanged {
    webhook_endpoints_changed: u64,
}

impl EndpointsChanged {
    /// An endpoint is created, changed, enabled or deleted, or gets another secret. A change that fails counts as well.
    pub const ONE: Self = Self { webhook_endpoints_changed: 1 };
}

#[derive(Debug, Serialize)]
struct TrailView {
    status: &'static str,
    at: String,
    by: PublicActor,
}

impl PaymentView {
    /// Creates the view of a payment without its data.
    pub fn new(head: &Head) -> Self {
        let trail = |TrailEntry { status, at, by }: TrailEntry| TrailView {
            status: status.as_str(),
            at: at.to_string(),
            by: (&by).into(),
        };
        Self {
            payment_id: head.payment_id.to_string(),
            account_id: head.account.to_string(),
            payee_account_id: head.payee.to_string(),
            amount_minor: head.money.amount.get(),
            currency: head.money.currency.to_string(),
            scheduled_for: head.scheduled_for.to_string(),
            date_rule: None,
            reference: head.reference.as_ref().map(ToString::to_string),
            due_at: head.due_at.to_string(),
            due_date: head.due_date.to_string(),
            moved: MoveView::default(),
            status: head.state.status().as_str(),
            version: head.version,
            created_at: head.created_at().to_string(),
            updated_at: head.updated_at().to_string(),
            trail: head.trail().map(trail).collect(),
            transaction_id: head.transaction_id().map(ToString::to_string),
            failure_code: head.failure().map(|failure| failure.code().to_string()),
            failure_reason: head.failure().map(|failure| failure.reason().to_owned()),
            settled_at: head.settled_at().map(|at| at.to_string()),
            data: None,
        }
    }

    /// Its entity tag: its version, in quotes.
    pub(crate) fn etag(&self) -> String {
        format!("\"{}\"", self.version)
    }

    /// Adds the fields of the date that only the details in force have: the client's rule, the
    /// reason of the move, and its calendar.
    #[must_use]
    pub fn with_dates(self, details: &Details) -> Self {
        let date_rule = details.instruction.date_rule.map(DateRule::as_str);
        Self { date_rule, moved: MoveView::new(details), ..self }
    }

    /// Adds the data, byte for byte as the client sent it.
    ///
    /// # Errors
    /// [`Problem::internal`] if the stored data is not JSON, or a sealed row has it.
    pub fn with_data(self, data: Option<&PaymentData>) -> Result<Self, Problem> {
        Ok(Self { data: data.map(raw).transpose()?, ..self })
    }
}

/// The versions of a payment that have content of their own, the first one first.
#[derive(Debug, Serialize)]
pub struct VersionsView {
    versions: Vec<VersionView>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct VersionView {
    version: u32,
    at: String,
    by: PublicActor,
    changed_fields: Vec<&'static str>,
    payee_account_id: String,
    amount_minor: i64,
    currency: String,
    scheduled_for: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    date_rule: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
    due_at: String,
    due_date: String,
    #[serde(flatten)]
    moved: MoveView,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
}

impl VersionsView {
    /// Creates the view of all details that were in force, the first ones first.
    ///
    /// # Errors
    /// [`Problem::internal`] if stored data is not JSON, or a sealed row has it.
    pub fn new(chain: &[Details], with_data: bool) -> Result<Self, Problem> {
        let before = std::iter::once(None).chain(chain.iter().map(Some));
        let version = |(details, before): (&Details, Option<&Details>)| {
            let Instruction { payee, money, scheduled_for, date_rule, reference, data, .. } = &details.instruction;
            Ok(VersionView {
                version: details.amendment.map_or(1, |amendment| amendment.name.version),
                at: details.created_at.to_string(),
                by: (&details.created_by).into(),
                changed_fields: before.map(|before| before.changes(details)).unwrap_or_default(),
                payee_account_id: payee.to_string(),
                amount_minor: money.amount.get(),
                currency: money.currency.to_string(),
                scheduled_for: scheduled_for.to_string(),
                date_rule: date_rule.map(DateRule::as_str),
                reference: reference.as_ref().map(ToString::to_string),
                due_at: details.due_at.to_string(),
                due_date: details.due_date.to_string(),
                moved: MoveView::new(details),
                data: data.as_ref().filter(|_| with_data).map(raw).transpose()?,
            })
        };
        Ok(Self { versions: chain.iter().zip(before).map(version).collect::<Result<_, Problem>>()? })
    }
}

/// A client's data, byte for byte as it was sent.
fn raw(data: &PaymentData) -> Result<Box<RawValue>, Problem> {
    let in_row = |sealed: &SealedData| Problem::internal(format!("the data is in the sealed row {}", sealed.place));
    RawValue::from_string(data.text().map_err(in_row)?.as_str().to_owned()).map_err(Problem::internal)
}

/// The counts and sums of a date. Sums are texts of whole numbers: they can exceed 64 bits, and many readers of JSON round
/// its numbers to doubles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CountsView {
    by_status: ByStatus<i64>,
    total: i64,
    archived: i64,
    unparsed: i64,
    /// By currency, in minor units.
    sums: BTreeMap<String, ByStatus<String>>,
}

/// A number per status, in the order of a payment's life.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ByStatus<N>([N; Status::ALL.len()]);

impl<N: Serialize> Serialize for ByStatus<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Status::ALL.iter().map(|status| status.as_str()).zip(&self.0))
    }
}

impl CountsView {
    /// Creates the view of a date; a currency with a sum in any status gets one in each.
    pub fn new(counts: &DayCounts) -> Self {
        let sums = counts.sums().map(|(currency, ..)| {
            (currency.to_string(), ByStatus(Status::ALL.map(|status| counts.sum(currency, status).to_string())))
        });
        Self {
            by_status: ByStatus(Status::ALL.map(|status| counts.count(status))),
            total: counts.total(),
            archived: counts.archived,
            unparsed: counts.unparsed,
            sums: sums.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_sums_are_written_in_full() {
        let mut counts = DayCounts::default();
        counts.shift(Status::Pending, 2);
        counts.shift_sum("GBP".parse().unwrap(), Status::Pending, 10_i128.pow(38) - 1);
        counts.shift_sum("EUR".parse().unwrap(), Status::Failed, -(1 << 100));
        counts.archived = i64::MAX;
        let want = concat!(
            r#"{"byStatus":{"SCHEDULED":0,"PENDING":2,"PROCESSED":0,"FAILED":0,"CANCELLED":0},"#,
            r#""total":2,"archived":9223372036854775807,"unparsed":0,"sums":{"#,
            r#""EUR":{"SCHEDULED":"0","PENDING":"0","PROCESSED":"0","FAILED":"-1267650600228229401496703205376","#,
            r#""CANCELLED":"0"},"#,
            r#""GBP":{"SCHEDULED":"0","PENDING":"99999999999999999999999999999999999999","PROCESSED":"0","FAILED":"0","#,
            r#""CANCELLED":"0"}}}"#,
        );
        assert_eq!(serde_json::to_string(&CountsView::new(&counts)).unwrap(), want);
    }
}
