//! Payments and their numbers as the API shows them.

use std::collections::BTreeMap;

use payments_model::{DayCounts, Head, JsonText, Status, TrailEntry};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::Problem;

/// A payment in JSON, its fields in the documented order.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentView {
    payment_id: String,
    account_id: String,
    payee_account_id: String,
    amount_minor: i64,
    currency: String,
    scheduled_for: String,
    due_at: String,
    due_date: String,
    status: &'static str,
    version: u32,
    created_at: String,
    updated_at: String,
    trail: Vec<TrailView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    settled_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
}

/// A payment in the list of a date, as the index shows it: without what only its head has.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DueView {
    /// Its id.
    pub payment_id: String,
    /// Who pays.
    pub account_id: String,
    /// Who is paid.
    pub payee_account_id: String,
    /// How much, in minor units.
    pub amount_minor: i64,
    /// Of what.
    pub currency: String,
    /// When it falls due.
    pub due_at: String,
    /// Its business date.
    pub due_date: String,
    /// Where it is in its life.
    pub status: &'static str,
    /// Its version.
    pub version: u32,
    /// When it was settled, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled_at: Option<String>,
}

#[derive(Debug, Serialize)]
struct TrailView {
    status: &'static str,
    at: String,
    by: String,
}

impl PaymentView {
    /// A payment without its data.
    #[must_use]
    pub fn of(head: &Head) -> Self {
        let trail = |TrailEntry { status, at, by }: TrailEntry| TrailView {
            status: status.as_str(),
            at: at.to_string(),
            by: by.to_string(),
        };
        Self {
            payment_id: head.payment_id.to_string(),
            account_id: head.account.to_string(),
            payee_account_id: head.payee.to_string(),
            amount_minor: head.money.amount.get(),
            currency: head.money.currency.to_string(),
            scheduled_for: head.scheduled_for.to_string(),
            due_at: head.due_at.to_string(),
            due_date: head.due_date.to_string(),
            status: head.state.status().as_str(),
            version: head.version,
            created_at: head.created_at().to_string(),
            updated_at: head.updated_at().to_string(),
            trail: head.trail().map(trail).collect(),
            transaction_id: head.transaction_id().map(ToString::to_string),
            failure_reason: head.failure_reason().map(|reason| reason.as_str().to_owned()),
            settled_at: head.settled_at().map(|at| at.to_string()),
            data: None,
        }
    }

    /// The same with its data, byte for byte as it was put in.
    ///
    /// # Errors
    /// [`Problem::internal`] where the stored data is not JSON.
    pub fn with_data(self, data: Option<&JsonText>) -> Result<Self, Problem> {
        let raw = data.map(|data| RawValue::from_string(data.as_str().to_owned()));
        Ok(Self { data: raw.transpose().map_err(Problem::internal)?, ..self })
    }
}

/// The numbers of a date. All of them are whole: JSON knows no limit for them, but a reader may, and
/// sums can be larger than 64 bits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CountsView {
    by_status: ByStatus<i64>,
    total: i64,
    archived: i64,
    unparsed: i64,
    /// By currency, in minor units.
    sums: BTreeMap<String, ByStatus<i128>>,
}

/// A number for each status, in the order of a payment's life.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ByStatus<N>([N; Status::ALL.len()]);

impl<N: Serialize> Serialize for ByStatus<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Status::ALL.iter().map(|status| status.as_str()).zip(&self.0))
    }
}

impl CountsView {
    /// The numbers, with a sum for every status of each currency that has one.
    #[must_use]
    pub fn of(counts: &DayCounts) -> Self {
        let sums = counts.sums().map(|(currency, ..)| {
            (currency.to_string(), ByStatus(Status::ALL.map(|status| counts.sum(currency, status))))
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
    fn numbers_are_written_to_their_last_digit() {
        let mut counts = DayCounts::default();
        counts.shift(Status::Pending, 2);
        counts.shift_sum("GBP".parse().unwrap(), Status::Pending, 10_i128.pow(38) - 1);
        counts.shift_sum("EUR".parse().unwrap(), Status::Failed, -(1 << 100));
        counts.archived = i64::MAX;
        let want = concat!(
            r#"{"byStatus":{"SCHEDULED":0,"PENDING":2,"PROCESSED":0,"FAILED":0,"CANCELLED":0},"#,
            r#""total":2,"archived":9223372036854775807,"unparsed":0,"sums":{"#,
            r#""EUR":{"SCHEDULED":0,"PENDING":0,"PROCESSED":0,"FAILED":-1267650600228229401496703205376,"CANCELLED":0},"#,
            r#""GBP":{"SCHEDULED":0,"PENDING":99999999999999999999999999999999999999,"PROCESSED":0,"FAILED":0,"#,
            r#""CANCELLED":0}}}"#,
        );
        assert_eq!(serde_json::to_string(&CountsView::of(&counts)).unwrap(), want);
    }
}
