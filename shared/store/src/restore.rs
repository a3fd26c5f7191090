//! Reads and writes that only a restore of the tables needs.

pub(crate) mod checkpoints;
pub(crate) mod heads;
pub(crate) mod pages;
