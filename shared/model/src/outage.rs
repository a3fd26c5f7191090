//! Outages: failed calls to other services, in the few kinds that callers handle differently.

use std::error::Error;

/// The kind of an outage: whether a retry can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutageKind {
    /// The service throttles the call. A retry succeeds later.
    Throttled,
    /// The service did not answer, or is unavailable. A retry succeeds later.
    Unavailable,
    /// The call, the configuration or the stored data is wrong. A retry does not help.
    Broken,
}

/// The error and its causes, outermost first, for a log line.
#[must_use]
pub fn causes(error: &(dyn Error + 'static)) -> Vec<String> {
    std::iter::successors(Some(error), |&error| error.source()).map(ToString::to_string).collect()
}

/// The error of a failed call to another service. It knows its kind, so it is classified only where it arises.
pub trait Outage: Error + Send + Sync + 'static {
    /// The kind of this error.
    fn kind(&self) -> OutageKind;
}
