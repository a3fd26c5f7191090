//! Requests of operators and schedules: recounts, redates, the switch, limits of dates, and the actions of the console.

pub(crate) mod action;
pub(crate) mod day_limit;
pub mod recount;
pub mod redate;
pub mod redrive;
pub(crate) mod switch;
