//! The reasons why work ends before nothing is left.

/// The reason why work ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Halt<E> {
    /// The deadline came.
    OutOfTime,
    /// A call failed too often in a row.
    GivenUp(E),
    /// A call failed in a way that a retry does not change.
    Broken(E),
}
