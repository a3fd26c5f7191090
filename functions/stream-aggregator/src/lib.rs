//! `stream-aggregator`: counts payments by date and status, each change exactly once.
//!
//! Lambda delivers at least once. A batch may be repeated after a success, or with other boundaries, and a
//! poller that lost its position starts at the oldest record. The checkpoint of the stream shard moves in
//! the same transaction as the counters, and shows which changes were counted.

mod config;
mod event;
mod fold;
mod function;
mod gap;

pub use config::Config;
pub use event::{Event, EventError};
pub use fold::{Change, Effect, fold};
pub use function::{Aggregator, CONFLICT_WAITS, CountError, LOG_WAITS};
