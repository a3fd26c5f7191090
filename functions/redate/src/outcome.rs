//! The outcome of a run, which the function answers and emits as metrics, and a limit on its log.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use metrique_writer::Entry;
use payments_model::redate::Action;
use payments_model::{BusinessDate, PaymentId};
use serde::{Serialize, Serializer};

/// The most payments of each kind that an outcome names.
const MAX_EXAMPLES: usize = 10;

/// The most payments of each kind that the log of one run names: 30 KB at 300 bytes a line.
const MAX_NOTICES: u64 = 100;

/// The outcome of a run.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RedateOutcome {
    /// Scheduled payments of closed dates that were looked at.
    pub looked: u64,
    /// Payments that were moved.
    pub moved: u64,
    /// Payments that a move would move. In a move: payments that it judged and had no time to move.
    pub waiting: u64,
    /// Payments of `waiting` by date and calendar, the first 31 of them. Only a look has them.
    #[serde(serialize_with = "waiting_dates")]
    pub waiting_dates: BTreeMap<(String, String), u64>,
    /// Payments that stay due on a closed date.
    pub left: Left,
    /// Payments that were claimed, cancelled or amended since the index showed them.
    pub changed_meanwhile: u64,
    /// Payments that cannot be read or judged. The log names them.
    pub unreadable: u64,
    /// Whether all payments of all dates were looked at, and none is left that could be moved.
    pub is_complete: bool,
    /// The first date that is not complete, at which the next run can start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Payments that were moved or wait, at most ten.
    pub examples: Vec<String>,
    /// Payments that are left because of their rule `refuse`, or because the calendar ends, at most ten.
    pub examples_left: Vec<String>,
    /// Payments that cannot be read, at most ten.
    pub examples_unreadable: Vec<String>,
    /// The ticket of a move without a second person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

/// Payments that stay due on a closed date, by reason.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Their rule is `none`.
    pub none: u64,
    /// Their rule is `refuse`.
    pub refuse: u64,
    /// Their calendar covers no open date after it.
    pub uncovered: u64,
}

/// The most dates of calendars that an outcome names.
const MAX_DATES: usize = 31;

/// Writes dates as a list, whose length a reader of the last run can bound.
fn waiting_dates<S: Serializer>(dates: &BTreeMap<(String, String), u64>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Waiting<'d> {
        date: &'d str,
        calendar: &'d str,
        count: u64,
    }
    let dates = dates.iter().take(MAX_DATES);
    serializer.collect_seq(dates.map(|((date, calendar), count)| Waiting { date, calendar, count: *count }))
}

impl RedateOutcome {
    /// Counts a payment that waits on a closed date of a calendar.
    pub(crate) fn add_waiting(&mut self, date: BusinessDate, calendar: &str) {
        self.waiting += 1;
        *self.waiting_dates.entry((date.to_string(), calendar.to_owned())).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.looked += other.looked;
        self.moved += other.moved;
        self.waiting += other.waiting;
        for (date, count) in other.waiting_dates {
            *self.waiting_dates.entry(date).or_default() += count;
        }
        self.left.none += other.left.none;
        self.left.refuse += other.left.refuse;
        self.left.uncovered += other.left.uncovered;
        self.changed_meanwhile += other.changed_meanwhile;
        self.unreadable += other.unreadable;
        self.is_complete &= other.is_complete;
        self.examples.extend(other.examples);
        self.examples.truncate(MAX_EXAMPLES);
        self.examples_left.extend(other.examples_left);
        self.examples_left.truncate(MAX_EXAMPLES);
        self.examples_unreadable.extend(other.examples_unreadable);
        self.examples_unreadable.truncate(MAX_EXAMPLES);
    }

    /// Names a payment that was moved or waits, if there is room.
    pub(crate) fn add_example(&mut self, payment_id: PaymentId) {
        add_to(&mut self.examples, payment_id);
    }

    /// Names a payment that is left, if there is room.
    pub(crate) fn add_example_left(&mut self, payment_id: PaymentId) {
        add_to(&mut self.examples_left, payment_id);
    }

    /// Names a payment that cannot be read, if there is room.
    pub(crate) fn add_example_unreadable(&mut self, payment_id: PaymentId) {
        add_to(&mut self.examples_unreadable, payment_id);
    }
}

fn add_to(examples: &mut Vec<String>, payment_id: PaymentId) {
    if examples.len() < MAX_EXAMPLES {
        examples.push(payment_id.to_string());
    }
}

/// The metrics of a run. Only a look says how many payments wait, or stay by the rule `refuse` or because the calendar ends.
#[derive(Debug, Entry)]
#[entry(rename_all = "PascalCase")]
pub(crate) struct RedateMetrics {
    /// Payments that were moved.
    redated: Option<u64>,
    /// Payments that a move would move.
    waiting_for_redate: Option<u64>,
    /// Payments that stay due on a closed date, although their clients did not ask for that.
    left_on_closed_date: Option<u64>,
    /// 1 if payments were left out, or cannot be read or judged.
    redate_unfinished: u64,
    /// 1 if payments were moved under a ticket.
    four_eyes_bypassed: Option<u64>,
}

impl RedateMetrics {
    pub(crate) fn from_outcome(outcome: &RedateOutcome, action: Action) -> Self {
        let is_look = action == Action::Look;
        Self {
            redated: (!is_look).then_some(outcome.moved),
            waiting_for_redate: is_look.then_some(outcome.waiting),
            left_on_closed_date: is_look.then_some(outcome.left.refuse + outcome.left.uncovered),
            redate_unfinished: u64::from(!outcome.is_complete || outcome.unreadable > 0),
            four_eyes_bypassed: outcome.ticket.as_ref().map(|_| 1),
        }
    }
}

/// The number of payments of one kind to be named in the log of a run, over all shards.
#[derive(Debug, Default)]
pub(crate) struct Notices(AtomicU64);

impl Notices {
    /// Counts a payment, and returns whether the log may name it.
    pub(crate) fn one_more(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) < MAX_NOTICES
    }
}
