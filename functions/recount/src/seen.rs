//! Counters that stood still while their payments were counted.

use payments_model::DayCounts;
use payments_store::DateCounters;

/// Counters that stood still, and the counts of the payments.
#[derive(PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) counters: DateCounters,
    pub(crate) recounted: DayCounts,
}

impl Seen {
    /// Whether the counters equal the payments, without unparsed changes.
    pub(crate) fn is_exact(&self) -> bool {
        self.counters.counts == self.recounted
    }
}
