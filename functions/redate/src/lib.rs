//! `redate`: moves scheduled payments whose date was closed after they had been created, when an operator asks for it.
//!
//! A payment's date is decided once. If a calendar changes later, nothing moves by itself: several
//! times a day this function counts the payments that wait for an operator.

mod bound;
mod config;
mod function;
mod judge;
mod outcome;
mod run;
mod shard;

pub use config::Config;
pub use function::Redate;
pub use outcome::{Left, RedateOutcome};
