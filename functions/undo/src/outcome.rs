//! The outcomes of plans and runs, which the function answers, and the metrics of runs.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use metrique_writer::Entry;
use payments_files::{UndoEnd, claimed_path};
use payments_model::{UndoId, UtcSecond};
use payments_store::{UndoPlan, UndoRun, UndoTotals};
use serde::Serialize;

/// The time after which a run that is not at its end is an alarm: a million payments take 70 minutes at 240 a second.
const MOST_TIME: TimeDelta = TimeDelta::hours(2);

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum UndoOutcome {
    /// A plan was written.
    Planned(PlanOutcome),
    /// Runs were begun or continued.
    Ran {
        /// The runs.
        runs: Vec<RunOutcome>,
    },
}

/// The outcome of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanOutcome {
    /// The undo.
    pub id: String,
    /// The number of the plan.
    pub plan: u32,
    /// The path of its file.
    pub file: String,
    /// The SHA-256 of its file, which an approval names.
    pub sha256: String,
    /// The number of its payments.
    pub payments: u64,
    /// Their counts and sums, by status and currency.
    pub totals: Vec<Total>,
    /// Ids that no payment has, at most ten.
    pub unknown: Vec<String>,
    /// Payments that cannot be read, and are not in the plan.
    pub unreadable: u64,
    /// The reasons why the plan may lack selected payments. Such a plan runs only if its request accepts that.
    pub inexact: Vec<String>,
    /// Whether the plan has all selected payments, and not only as many as a plan can have.
    pub is_complete: bool,
}

/// A count and a sum of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Total {
    /// The status. `None` for creates that were cut off.
    pub status: Option<String>,
    /// The currency.
    pub currency: String,
    /// The number of payments.
    pub count: u64,
    /// Their sum in minor units, as a text: it may exceed the numbers of JSON.
    pub sum: String,
}

/// The outcome of a run so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunOutcome {
    /// The undo.
    pub id: String,
    /// The number of the plan.
    pub plan: u32,
    /// The number of the plan's payments.
    pub payments: u64,
    /// The number of payments whose results are stored.
    pub place: u64,
    /// The number of payments by their ends.
    pub ends: BTreeMap<String, u64>,
    /// Whether the run is at its end.
    pub has_ended: bool,
    /// The path of the list of claimed payments.
    pub claimed: String,
    /// The ticket of a run without a second person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// Payments of this invocation, by their ends.
    #[serde(skip)]
    pub(crate) now: BTreeMap<String, u64>,
    #[serde(skip)]
    pub(crate) began_at: UtcSecond,
}

/// Sums as an outcome names them.
pub(crate) fn totals(totals: &UndoTotals) -> Vec<Total> {
    let total = |((status, currency), (count, sum)): (&(_, _), &(u64, i128))| Total {
        status: Option::map(*status, |status: payments_model::Status| status.to_string()),
        currency: payments_model::Currency::to_string(currency),
        count: *count,
        sum: sum.to_string(),
    };
    totals.iter().map(total).collect()
}

impl RunOutcome {
    pub(crate) fn new(id: &UndoId, plan: &UndoPlan, run: &UndoRun) -> Self {
        Self {
            id: id.to_string(),
            plan: plan.number,
            payments: plan.payments,
            place: run.place,
            ends: run.ends.clone(),
            has_ended: run.ended_at.is_some(),
            claimed: claimed_path(id, plan.number).to_string(),
            ticket: run.ticket.as_ref().map(ToString::to_string),
            now: BTreeMap::new(),
            began_at: run.began_at,
        }
    }

    fn now(&self, end: UndoEnd) -> u64 {
        self.now.get(end.as_str()).copied().unwrap_or(0)
    }
}

/// The metrics of a run that begins without a second person.
#[derive(Debug, Entry)]
#[entry(rename_all = "PascalCase")]
pub(crate) struct Bypassed {
    /// 1.
    pub(crate) four_eyes_bypassed: u64,
}

/// The metrics of an invocation that ran.
#[derive(Debug, Entry)]
#[entry(rename_all = "PascalCase")]
pub(crate) struct UndoMetrics {
    /// Payments that were cancelled.
    undone: u64,
    /// Runs that failed or take too long, and payments that an operator has to look at.
    undo_unfinished: u64,
}

impl UndoMetrics {
    pub(crate) fn from_runs(runs: &[RunOutcome], failed: u64, now: UtcSecond) -> Self {
        let is_late = |run: &&RunOutcome| !run.has_ended && run.began_at.saturating_add(MOST_TIME) <= now;
        let late = runs.iter().filter(is_late).count();
        let unfit: u64 = runs.iter().map(|run| run.now(UndoEnd::Lost) + run.now(UndoEnd::Unreadable)).sum();
        Self {
            undone: runs.iter().map(|run| run.now(UndoEnd::Cancelled)).sum(),
            undo_unfinished: failed + unfit + u64::try_from(late).unwrap_or(u64::MAX),
        }
    }
}
