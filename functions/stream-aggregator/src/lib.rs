//! `stream-aggregator`: counts payments by date and status, each change exactly once.
//!
//! Lambda delivers at least once. A batch may be repeated after a success, or with other boundaries, and a
//! poller that lost its position starts at the oldest record. The checkpoint of the stream shard moves in
//! the same transaction as the counters, and shows which changes were counted. This relies on Lambda: if a
//! mapping never discards records, Lambda delivers a batch only after all earlier ones succeeded.
//!
//! An amendment to another date changes the counters of both dates. If a terminal head disappears from
//! the hot table, the payment was archived or its head has expired. The payment then counts as
//! archived: only the long-term table has its head. Counters cost 2 write units per commit and date,
//! and the checkpoint costs 2 write units per commit of up to 1,000 changes.

mod config;
mod event;
mod fold;
mod function;
mod gap;

pub use config::Config;
pub use event::{Event, EventError};
pub use fold::{Change, Effect, fold};
pub use function::{Aggregator, CONFLICT_WAITS, CountError, LOG_WAITS};
