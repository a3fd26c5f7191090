//! Switches that stop consumers, as operators and outages do.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Switches that stop consumers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Switches {
    /// Nothing is sent: the sweeps and `dispatch` are off.
    pub(crate) paused: Arc<AtomicBool>,
    /// No record of the stream is delivered.
    pub(crate) stalled: Arc<AtomicBool>,
}
