//! Outcomes of scheduled runs: the last run of each job, and the figures of each day. The switch, which ends runs.
//! Undos, which take several runs.

pub(crate) mod figures;
pub(crate) mod last;
mod shortened;
pub(crate) mod switch;
pub(crate) mod undo;
