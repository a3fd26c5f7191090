//! `recount`: compares the counters of dates with their payments every night, and repairs drift on request.
//!
//! A repair corrects a date only if the same drift was found at least 25 hours earlier.

mod config;
mod function;
mod look;
mod outcome;
mod repair;
mod run;
mod seen;

pub use config::Config;
pub use function::Recount;
pub use outcome::{Drift, RecountOutcome};
