//! What only a restore of the tables reads and writes.

pub(crate) mod checkpoints;
pub(crate) mod heads;
pub(crate) mod pages;
