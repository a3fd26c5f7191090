//! The claims that a shard has reserved, from the reservation until each is made or given back.

use std::collections::{HashSet, VecDeque};

use payments_model::{BusinessDate, Head, PaymentId, State};
use payments_store::DueRow;

/// The reserved claims of a shard.
#[derive(Default)]
pub(crate) struct Reserved {
    /// Payments of one date that are not claimed yet.
    pub(crate) rows: VecDeque<DueRow>,
    /// Payments of `rows` whose last claim was not answered: it may have been made.
    pub(crate) unanswered: HashSet<PaymentId>,
    /// Payments that were not claimed, to give back.
    pub(crate) unclaimed: Vec<DueRow>,
}

impl Reserved {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.unclaimed.is_empty()
    }

    /// Notes that a claim was not made. Its reservation is given back, unless an earlier claim without an answer may have been made.
    pub(crate) fn not_claimed(&mut self, row: DueRow, found: Option<&Head>) {
        let is_unclaimed = found.is_some_and(|head| matches!(head.state, State::Scheduled | State::Cancelled));
        if is_unclaimed || !self.unanswered.contains(&row.due.payment_id) {
            self.unclaimed.push(row);
        }
    }

    /// Keeps the payments of dates that are not held; the others are given back.
    pub(crate) fn leave(&mut self, is_held: impl Fn(BusinessDate) -> bool) {
        let rows = std::mem::take(&mut self.rows);
        let (left, kept): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| is_held(row.due.due_date));
        self.rows = kept.into();
        self.unclaimed.extend(left.into_iter().filter(|row| !self.unanswered.contains(&row.due.payment_id)));
    }
}
