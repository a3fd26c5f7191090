//! Outcomes of scheduled runs: the last run of each job, and the figures of each day. The switch and releases of dates.

pub(crate) mod figures;
pub(crate) mod last;
pub(crate) mod release;
mod shortened;
pub(crate) mod switch;
