//! `openapi.yaml`: its names, the code's answers, and the needs of generators.

pub(crate) mod generators;
pub(crate) mod names;
pub(crate) mod openapi;
