//! `ingest`: creates payments, one or up to a hundred at a time, and amends or cancels scheduled ones.

mod amend;
mod batch;
mod cancel;
mod config;
mod create;
mod dates;
mod function;
mod order;

pub use config::Config;
pub use function::Ingest;
