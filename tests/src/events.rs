//! The cases of the functions: files of events, rows of requests, and the steps before the events of triggers.

pub mod files;
pub mod requests;
pub mod triggers;
