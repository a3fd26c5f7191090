//! The log of changes of payments: its events, their kinds, and the filter of a reader.

pub(crate) mod event;
pub mod event_filter;
pub(crate) mod kind;
pub(crate) mod marks;
