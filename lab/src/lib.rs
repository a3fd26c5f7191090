//! The simulated month: one seed, one bank, and days on which everything can go wrong.
//!
//! The functions' own handlers run over the embedded engine, on one thread and on paused time, so a seed always plays
//! the same month. Clients, the stream, the queues, the schedules and the transaction service are modelled here, each
//! as unreliable as it may be. A checker that shares no code with the functions reads every change.
//!
//! The public modules serve the fault tests, too: the laws of payments and of the log, and receivers of webhooks.

mod checks;
mod ending;
pub mod facts;
pub mod laws;
mod minutes;
mod month;
mod opening;
mod plans;
mod search;
mod settings;
mod shrink;
mod time;
mod workloads;
pub mod world;

pub use month::{Month, play, play_watched};
pub use payments_machine::layers::weaken::Weakness;
pub use plans::acts::{Act, AmendmentCounts};
pub use plans::faults::{FaultCounts, FaultKind};
pub use plans::outages::Outage;
pub use search::{Case, SEEDS, search, table};
pub use settings::Settings;
pub use shrink::shrink;
pub use workloads::redates::closing;
pub use workloads::runbook::{Action, actions};
pub use world::alarms::{Raised, RaisedAlarms, alarm_names};
