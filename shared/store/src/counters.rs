//! The counters of dates: how the stream changes them, and how a recount checks and repairs them.

pub(crate) mod checkpoint;
pub(crate) mod counted;
pub(crate) mod date_counters;
pub(crate) mod recount;
pub(crate) mod repair;
