//! `archive`: moves the heads of payments whose day is over to the long-term table, every night.
//!
//! The long-term table has the heads of settled payments since their settlement, and DynamoDB
//! deletes those of the hot table once they have expired. So the archive moves cancelled payments,
//! and settled ones that are still in the hot table days later.

mod config;
mod function;
mod outcome;
mod readiness;
mod shard;

pub use config::Config;
pub use function::{ARCHIVE_EVERY, Action, Archive, Request};
pub use outcome::ArchiveOutcome;
