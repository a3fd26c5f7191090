//! `query-account`: lists an account's payments, returns single ones, and shows calendars.
//!
//! Payments are strongly consistent, from both tables.

mod calendars;
mod config;
mod function;
mod page;
mod plan;

pub use config::Config;
pub use function::QueryAccount;
pub use plan::{PARAMETERS as LIST_PARAMETERS, VERSIONS_PARAMETERS};
