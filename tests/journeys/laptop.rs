//! `cargo local` over real HTTP: its gateway, its engine's port, its sandbox, its demo and its description.

mod client;
mod demo;
pub(crate) mod description;
mod engine;
mod examples;
pub(crate) mod gateway;
mod sandbox;
