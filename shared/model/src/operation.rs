//! Requests of operators and schedules: recounts, redates, undos, the switch, limits of dates, the console's actions.

pub(crate) mod action;
pub(crate) mod day_limit;
pub mod recount;
pub mod redate;
pub mod redrive;
pub(crate) mod switch;
pub mod undo;
