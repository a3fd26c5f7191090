//! The outcome of a run, which the function answers and emits as metrics, and a limit on its log.

use std::sync::atomic::{AtomicU64, Ordering};

use metrique_writer::Entry;
use serde::Serialize;

/// The most payments that the log of one run names: 30 KB at 300 bytes a line. A day without reports
/// would log two million lines.
const MAX_NOTICES: u64 = 100;

/// The outcome of a run.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Entry)]
#[serde(rename_all = "camelCase")]
#[entry(rename_all = "PascalCase")]
pub struct ArchiveOutcome {
    /// Payments archived.
    pub archived: u64,
    /// Payments still in the index that another run had archived.
    pub already_gone: u64,
    /// Payments whose day is over, but that are in no report yet.
    pub waiting_for_report: u64,
    /// Payments that changed since the index or this run read them. The next run tries again.
    pub changed: u64,
    /// Payments that cannot be read, or that have a different head in history. The log names them.
    #[entry(name = "ArchiveFailed")]
    pub failed: u64,
    /// Payments left for the next run.
    pub remaining: u64,
    /// Whether more payments than `remaining` may be left.
    #[entry(ignore)]
    pub remaining_is_lower_bound: bool,
    /// Shards that this run did not finish, because DynamoDB throttled them or did not answer.
    pub shards_given_up: u64,
    /// Payments of `waiting_for_report` that are overdue: their time was more than a day ago.
    pub overdue_waiting_for_report: u64,
    /// Payments of `failed` that are overdue, or whose date cannot be read.
    pub overdue_unmovable: u64,
    /// Payments of `remaining` that are overdue, as far as their entries were read.
    pub overdue_remaining: u64,
}

impl ArchiveOutcome {
    pub(crate) fn add(&mut self, other: &Self) {
        self.archived += other.archived;
        self.already_gone += other.already_gone;
        self.waiting_for_report += other.waiting_for_report;
        self.changed += other.changed;
        self.failed += other.failed;
        self.remaining += other.remaining;
        self.remaining_is_lower_bound |= other.remaining_is_lower_bound;
        self.shards_given_up += other.shards_given_up;
        self.overdue_waiting_for_report += other.overdue_waiting_for_report;
        self.overdue_unmovable += other.overdue_unmovable;
        self.overdue_remaining += other.overdue_remaining;
    }
}

/// The number of payments to be named in the log of a run, over all shards.
#[derive(Debug, Default)]
pub(crate) struct Notices(AtomicU64);

impl Notices {
    /// Counts a payment, and returns whether the log may name it.
    pub(crate) fn one_more(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) < MAX_NOTICES
    }

    /// The number of payments that the log does not name.
    pub(crate) fn left_out(&self) -> u64 {
        self.0.load(Ordering::Relaxed).saturating_sub(MAX_NOTICES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_names_a_hundred_payments_and_counts_the_rest() {
        let notices = Notices::default();
        let named = (0..150).filter(|_| notices.one_more()).count();
        assert_eq!((named, notices.left_out()), (100, 50));
        assert_eq!(Notices::default().left_out(), 0);
    }
}
