//! `seal`: writes the finished payments of past dates to Parquet files, which are never changed.
//!
//! A put of a part, if the part is absent, is the commit. The folder, listed, is the truth: a run that is killed
//! anywhere leaves whole parts, and the next run seals what no part has.

mod config;
mod date;
mod error;
mod function;
mod outcome;
mod payment;

pub use config::{Config, SEAL_AFTER_DAYS};
pub use function::{Action, RESERVED, Request, Seal};
pub use outcome::SealOutcome;
