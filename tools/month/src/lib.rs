//! The simulated month: one seed, one bank, and days in which everything goes wrong that can.
//!
//! The functions' own handlers run over the embedded engine, on one thread and on paused time, so a seed always plays the
//! same month. Clients, the stream, the queues, the schedules and the transaction service are modelled here, each as
//! unreliable as it may be. A checker that shares no code with the functions follows every change.

mod attributes;
mod bank;
mod changes;
mod checker;
mod clients;
mod ending;
mod faults;
mod files;
mod intent;
mod lag;
mod lambda;
mod month;
mod network;
mod partitions;
mod random;
mod requests;
mod stream;
mod switches;
mod time;
mod touched;
mod trace;
mod triggers;
mod weakness;

pub use faults::{FaultCounts, FaultKind};
pub use month::{Month, Settings, play};
pub use weakness::Weakness;
