//! What the report reads and writes: settled payments that are in no report yet, and its last run.

pub(crate) mod job;
pub(crate) mod unreported;
