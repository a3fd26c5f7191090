//! Requests of operators and schedules: recounts, redates, undos, the switch, and actions with their two persons.

pub(crate) mod action;
pub mod recount;
pub mod redate;
pub mod redrive;
pub mod second;
pub(crate) mod switch;
pub mod undo;
