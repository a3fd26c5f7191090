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
    /// Every second call fails, to DynamoDB and to the report store.
    pub(crate) failing: Arc<AtomicBool>,
}

impl Switches {
    /// Whether every second call fails.
    pub(crate) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// Lets everything run again.
    pub(crate) fn release(&self) {
        [&self.paused, &self.stalled, &self.failing].iter().for_each(|switch| switch.store(false, Ordering::Relaxed));
    }
}
