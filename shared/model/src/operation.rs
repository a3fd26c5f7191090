//! What operators and schedules ask for: recounts, redates, and the actions of the console.

pub(crate) mod action;
pub mod recount;
pub mod redate;
