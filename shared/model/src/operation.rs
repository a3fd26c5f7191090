//! Requests of operators and schedules: recounts, redates, undos, the switch, and the actions of the console.

pub(crate) mod action;
pub mod recount;
pub mod redate;
pub mod redrive;
pub(crate) mod switch;
pub mod undo;
