//! Checks of the bank as it is: the checker of every day, and what clients, recounts and alarms must agree with.

pub(crate) mod acknowledged;
pub(crate) mod checker;
pub(crate) mod cleared;
pub(crate) mod cleared_again;
pub(crate) mod dates;
pub(crate) mod expectations;
pub(crate) mod recounts;
pub(crate) mod redated;
pub(crate) mod reversed;
pub(crate) mod sealed;
pub(crate) mod story;
