//! Switches that stop consumers, as operators and outages do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Switches that stop consumers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Switches {
    /// Nothing is sent: the sweeps and `dispatch` are off.
    pub(crate) paused: Arc<AtomicBool>,
    /// No record of the stream is delivered.
    pub(crate) stalled: Arc<AtomicBool>,
    /// No change is counted.
    pub(crate) uncounted: Arc<AtomicBool>,
    /// Every second call fails, to DynamoDB and to the report store.
    pub(crate) failing: Arc<AtomicBool>,
    /// `settle` has lost DynamoDB.
    pub(crate) cut_off: Arc<AtomicBool>,
    /// The API is closed, and nothing is swept, sent, reported or archived.
    pub(crate) restoring: Arc<AtomicBool>,
    /// The hot table is gone, or restored and without a stream.
    pub(crate) table_lost: Arc<AtomicBool>,
    /// The log's table is gone.
    pub(crate) log_lost: Arc<AtomicBool>,
}

impl Switches {
    /// Whether every second call fails.
    pub(crate) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// Whether `settle` has lost DynamoDB.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Relaxed)
    }

    /// Whether a restore is under way.
    pub(crate) fn is_restoring(&self) -> bool {
        self.restoring.load(Ordering::Relaxed)
    }

    /// Whether the hot table is gone, or has no stream yet.
    pub(crate) fn is_table_lost(&self) -> bool {
        self.table_lost.load(Ordering::Relaxed)
    }

    /// Whether the log's table is gone.
    pub(crate) fn is_log_lost(&self) -> bool {
        self.log_lost.load(Ordering::Relaxed)
    }

    /// Switches everything on again. A restore that is under way ends normally.
    pub(crate) fn release(&self) {
        let Self { paused, stalled, uncounted, failing, cut_off, .. } = self;
        let all = [paused, stalled, uncounted, failing, cut_off];
        all.iter().for_each(|switch| switch.store(false, Ordering::Relaxed));
    }
}
