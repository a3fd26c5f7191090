//! The cases of the functions: files of events, rows of requests, and what the events of triggers find.

pub mod files;
pub mod requests;
pub mod triggers;
