//! Requests of operators and schedules: recounts, redates, undos, the switch, limits of dates, feeds, and two persons.

pub(crate) mod action;
pub(crate) mod day_limit;
pub(crate) mod feed;
pub mod recount;
pub mod redate;
pub mod redrive;
pub mod second;
pub(crate) mod switch;
pub mod undo;
