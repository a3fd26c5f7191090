//! Documents: their links, their commands, and their aids for newcomers.

pub(crate) mod commands;
pub(crate) mod joining;
pub(crate) mod links;
