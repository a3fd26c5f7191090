//! The simulated month: one seed, one bank, and days in which everything goes wrong that can.
//!
//! The functions' own handlers run over the embedded engine, on one thread and on paused time, so a seed always plays the
//! same month. Clients, the stream, the queues, the schedules and the transaction service are modelled here, each as
//! unreliable as it may be. A checker that shares no code with the functions follows every change.

mod alarms;
mod attributes;
mod bank;
mod broken;
mod by_hand;
mod by_hand_log;
mod changes;
mod checker;
mod clients;
mod ending;
mod expectations;
mod faults;
mod files;
mod intent;
mod lag;
mod lambda;
mod metrics;
mod minutes;
mod month;
mod network;
mod onset;
mod operator;
mod outages;
mod random;
mod requests;
mod runbook;
mod stream;
mod switches;
mod template;
mod time;
mod trace;
mod triggers;
mod weakness;

pub use alarms::{Raised, RaisedAlarms, alarm_names};
pub use faults::{FaultCounts, FaultKind};
pub use month::{Month, Settings, play};
pub use outages::Outage;
pub use runbook::{Action, actions};
pub use weakness::Weakness;
