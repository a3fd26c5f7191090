//! The outcome of a run, which the function answers and emits as metrics.

use metrique_writer::Entry;
use serde::Serialize;

/// The outcome of a run.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Entry)]
#[serde(rename_all = "camelCase")]
#[entry(rename_all = "PascalCase")]
pub struct SealOutcome {
    /// Payments sealed.
    pub sealed: u64,
    /// Parts written.
    #[entry(ignore)]
    pub parts: u64,
    /// Payments whose data has left the long-term table.
    #[entry(ignore)]
    pub cleared: u64,
    /// Payments that are not finished for good, or still in the hot table. A later run takes them.
    #[entry(ignore)]
    pub waiting: u64,
    /// Payments that cannot be read. The log names them.
    #[entry(ignore)]
    pub unreadable: u64,
    /// Dates left for the next run.
    #[entry(ignore)]
    pub dates_left: u64,
    /// Dates with finished payments that no part has and that do not wait, days after they could be sealed, and one more if the run ended
    /// at a part that could be cleared for days.
    pub seal_behind: u64,
    /// Sealed rows that differ from their payments, whose data stays. The log names them.
    pub seal_differs: u64,
}

/// The metric of a run that failed.
#[derive(Debug, Entry)]
#[entry(rename_all = "PascalCase")]
pub(crate) struct Differing {
    /// As [`SealOutcome::seal_differs`], of what the run saw.
    pub(crate) seal_differs: u64,
}
