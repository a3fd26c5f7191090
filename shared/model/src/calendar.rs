//! Instants, business dates, times of the day and the bank's time zone.
//!
//! A new payment's `dueAt` and `dueDate` are computed here, once: a UTC instant in whole seconds, and
//! its date in the bank's time zone.

pub(crate) mod instant;
pub(crate) mod scheduled_for;
pub(crate) mod time_of_day;
pub(crate) mod zone;
