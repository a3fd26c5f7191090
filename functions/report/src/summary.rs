//! Counts and sums of a report: per payee, status and currency.

use std::collections::BTreeMap;

use payments_model::{AccountId, Currency, Status, UtcSecond};
use serde::Serialize;

use crate::ReportError;
use crate::rows::Settlement;

/// The sums of a report while it is written. At most as many as the report has rows; one is an account
/// id of at most 48 bytes and its place on the heap, a count and a sum: about 160 bytes, so 16 MB for
/// the default of 100,000 rows in which no two share a payee.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    sums: BTreeMap<(AccountId, Status, Currency), Sum>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    count: u64,
    minor: i128,
}

/// What a summary's file says of its report.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SummaryFile<'s> {
    run: u64,
    report: &'s str,
    rows: u64,
    first_settled_at: String,
    last_settled_at: String,
    payees: Vec<PayeeLine<'s>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PayeeLine<'s> {
    payee_account_id: &'s str,
    status: &'static str,
    currency: &'s str,
    count: u64,
    sum_minor: i128,
}

/// What the summary's head says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heading<'h> {
    /// The run's number.
    pub(crate) run: u64,
    /// Where the report is published.
    pub(crate) report: &'h str,
    /// How many settlements it has.
    pub(crate) rows: u64,
    /// The settlement of the first and of the last of them.
    pub(crate) span: (UtcSecond, UtcSecond),
}

impl Summary {
    /// Adds a settlement.
    pub(crate) fn add(&mut self, settlement: &Settlement) -> Result<(), ReportError> {
        let head = &settlement.head;
        let sum = self.sums.entry((head.payee.clone(), head.state.status(), head.money.currency)).or_default();
        sum.count += 1;
        sum.minor = sum.minor.checked_add(head.money.amount.get().into()).ok_or(ReportError::SumOutOfRange)?;
        Ok(())
    }

    /// The summary as JSON, in order of payees, statuses and currencies. Sums are exact integers, which
    /// a reader must not take for floats.
    pub(crate) fn json(&self, heading: Heading<'_>) -> std::io::Result<Vec<u8>> {
        let lines = self.sums.iter().map(|((payee, status, currency), sum)| PayeeLine {
            payee_account_id: payee.as_str(),
            status: status.as_str(),
            currency: currency.code(),
            count: sum.count,
            sum_minor: sum.minor,
        });
        let file = SummaryFile {
            run: heading.run,
            report: heading.report,
            rows: heading.rows,
            first_settled_at: heading.span.0.to_string(),
            last_settled_at: heading.span.1.to_string(),
            payees: lines.collect(),
        };
        let mut json = serde_json::to_vec_pretty(&file)?;
        json.push(b'\n');
        Ok(json)
    }
}
