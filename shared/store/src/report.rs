//! Reads and writes of the report: settled payments that are in no report yet, and its last run.

pub(crate) mod job;
pub(crate) mod unreported;
