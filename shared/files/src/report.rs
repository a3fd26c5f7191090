//! Reports as files: their rows, written and read.

pub(crate) mod published;
pub(crate) mod rows;
