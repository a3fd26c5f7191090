//! `openapi.yaml`: its names, what the code answers, and what generators of clients need of it.

pub(crate) mod generators;
pub(crate) mod names;
pub(crate) mod openapi;
