//! Documents: their links, their commands, and what newcomers rely on.

pub(crate) mod commands;
pub(crate) mod habits;
pub(crate) mod joining;
pub(crate) mod links;
