//! The laws, which hold for payments whatever happens. Each law has a file that is named after it.
//!
//! The laws share only ids with the functions' code. They recognise a payment by its amount, which no
//! other intent has. They recognise an amendment by its own amount, if the amendment has one.

mod amended;
pub(crate) mod amended_events;
mod both_tables;
pub mod calls;
pub(crate) mod cancels;
mod conditions;
pub mod consumer;
pub mod counters;
pub(crate) mod day_limits;
pub(crate) mod event_origins;
pub mod findings;
pub mod journal;
pub(crate) mod kept_segments;
mod legal_changes;
mod no_payment_twice_or_lost;
mod one_content;
mod one_settlement;
pub mod reports;
pub(crate) mod told_times;
pub(crate) mod undone;

pub(crate) use amended::count as amendments;
pub use both_tables::as_in_history;
pub use conditions::check_write;
pub use legal_changes::check_change;
pub use no_payment_twice_or_lost::check_heads;
pub use one_content::{Pending, check_request};
pub use one_settlement::{check_over, check_settlement};
