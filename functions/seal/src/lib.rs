//! `seal`: writes the finished payments of past dates to Parquet files, and later clears their data from the table.
//!
//! A put of a part, if the part is absent, is the commit. The folder, listed, is the truth: a run that is killed
//! anywhere leaves whole parts, and the next run seals what no part has. What is cleared was compared with its row.

mod clear;
mod compared;
mod config;
mod date;
mod error;
mod function;
mod outcome;
mod payment;
mod stop;

pub use clear::CLEARS_PER_SECOND;
pub use config::{CLEAR_AFTER_DAYS, Config, SEAL_AFTER_DAYS};
pub use function::{Action, RESERVED, Request, Seal};
pub use outcome::SealOutcome;
