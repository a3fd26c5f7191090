//! The counters of dates: their changes by stream records, and their check and repair by a recount.

pub(crate) mod checkpoint;
pub(crate) mod claims;
pub(crate) mod counted;
pub(crate) mod date_counters;
pub(crate) mod recount;
pub(crate) mod repair;
