//! Why a call to something outside failed, in the few kinds that callers answer differently.

use std::error::Error;

/// What a caller can do about a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutageKind {
    /// The other side is there but asks for less at once; the same call succeeds later.
    Throttled,
    /// The other side did not answer, or says that it cannot now; the same call succeeds later.
    Unavailable,
    /// The call, the configuration or the stored data is wrong; repeating it changes nothing.
    Broken,
}

/// What lies behind an error, itself first, for a log line.
#[must_use]
pub fn causes(error: &(dyn Error + 'static)) -> Vec<String> {
    std::iter::successors(Some(error), |&error| error.source()).map(ToString::to_string).collect()
}

/// An error of something outside that knows its kind, so that it is classified where it arises
/// and nowhere else.
pub trait Outage: Error + Send + Sync + 'static {
    /// Which kind this error is.
    fn kind(&self) -> OutageKind;
}
