//! `query-due`: reads across accounts: payments by date or transaction, counts of dates, and events.
//!
//! The payments come from indexes, so they are eventually consistent.

mod config;
mod counts;
mod date;
mod events;
mod function;
mod page;
mod parameters;
mod transaction;

pub use config::Config;
pub use counts::PARAMETERS as COUNTS_PARAMETERS;
pub use events::PARAMETERS as EVENTS_PARAMETERS;
pub use function::QueryDue;
pub use parameters::LIST_PARAMETERS;
