//! The log of what happened to payments: its events, their kinds, and which of them a reader wants.

pub(crate) mod event;
pub mod event_filter;
pub(crate) mod kind;
pub(crate) mod marks;
