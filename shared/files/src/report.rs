//! Reports as files: what their rows say, written and read.

pub(crate) mod published;
pub(crate) mod rows;
