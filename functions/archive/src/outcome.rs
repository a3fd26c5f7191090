//! What a run of the archive did, as it is answered, measured and logged.

use std::sync::atomic::{AtomicU64, Ordering};

use metrique_writer::Entry;
use serde::Serialize;

/// How many payments one run names in the log. A line has some 300 bytes, so that all of them have
/// 30 KB; a day without reports would be two million lines otherwise.
const MAX_NOTICES: u64 = 100;

/// What a run did.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArchiveReport {
    /// Payments moved to history.
    pub archived: u64,
    /// Payments that the index still showed, but that another run had moved.
    pub already_gone: u64,
    /// Payments whose day is over, but that no report has taken yet.
    pub waiting_for_report: u64,
    /// Payments that are not what the index or this run saw: left for the next tick.
    pub changed: u64,
    /// Payments that cannot be read, or of which history has another head; the log says which.
    pub failed: u64,
    /// Payments left for the next tick.
    pub remaining: u64,
    /// Whether there may be more left than were counted.
    pub remaining_is_lower_bound: bool,
    /// Shards given up for now because DynamoDB throttled them or did not answer.
    pub shards_given_up: u64,
    /// Of those that wait for a report, how many could otherwise have moved more than a day ago.
    pub overdue_waiting_for_report: u64,
    /// Of those that failed, how many could otherwise have moved more than a day ago, or have no
    /// date that could be read.
    pub overdue_unmovable: u64,
    /// Of those left and counted one by one, how many could have moved more than a day ago.
    pub overdue_remaining: u64,
}

impl ArchiveReport {
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

/// The numbers of a run.
#[derive(Entry)]
#[entry(rename_all = "PascalCase")]
pub(crate) struct ArchiveMetrics {
    archived: u64,
    already_gone: u64,
    waiting_for_report: u64,
    changed: u64,
    archive_failed: u64,
    remaining: u64,
    shards_given_up: u64,
    overdue_waiting_for_report: u64,
    overdue_unmovable: u64,
    overdue_remaining: u64,
}

impl From<&ArchiveReport> for ArchiveMetrics {
    fn from(report: &ArchiveReport) -> Self {
        Self {
            archived: report.archived,
            already_gone: report.already_gone,
            waiting_for_report: report.waiting_for_report,
            changed: report.changed,
            archive_failed: report.failed,
            remaining: report.remaining,
            shards_given_up: report.shards_given_up,
            overdue_waiting_for_report: report.overdue_waiting_for_report,
            overdue_unmovable: report.overdue_unmovable,
            overdue_remaining: report.overdue_remaining,
        }
    }
}

/// How many payments the log was to name so far in a run, over all its shards.
#[derive(Debug, Default)]
pub(crate) struct Notices(AtomicU64);

impl Notices {
    /// Whether the log has room for one more.
    pub(crate) fn one_more(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) < MAX_NOTICES
    }

    /// How many the log had no room for.
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
