//! Why work ended before nothing was left.

use payments_boot::Stop;

/// Why work ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Halt<E> {
    /// The deadline came.
    OutOfTime,
    /// A call failed too often in a row.
    GivenUp(E),
    /// A call failed in a way that a retry does not change.
    Broken(E),
}

impl<E> Halt<E> {
    /// Creates the halt after a failure that is not retried.
    pub(crate) fn new(stop: Stop, error: E) -> Self {
        match stop {
            Stop::OutOfTime => Self::OutOfTime,
            Stop::GivenUp => Self::GivenUp(error),
            Stop::Broken => Self::Broken(error),
        }
    }
}
