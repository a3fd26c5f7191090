//! The system from outside, one module per journey.

mod create;
mod docs;
mod events;
mod faults;
mod list;
mod local;
mod units;
