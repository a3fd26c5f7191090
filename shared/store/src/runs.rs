//! Outcomes of scheduled runs: the last run of each job, and the figures of each day. The switch, which ends runs.
//! Releases of held dates, and undos, which take several runs.

pub(crate) mod cleared;
pub(crate) mod figures;
pub(crate) mod last;
pub(crate) mod release;
mod shortened;
pub(crate) mod switch;
pub(crate) mod undo;
