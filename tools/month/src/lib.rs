//! The simulated month: one seed, one bank, and days in which everything goes wrong that can.
//!
//! The functions' own handlers run over the embedded engine, on one thread and on paused time, so a seed always plays the
//! same month. Clients, the stream, the queues, the schedules and the transaction service are modelled here, each as
//! unreliable as it may be. A checker that shares no code with the functions follows every change.
//!
//! The public modules serve the fault tests too: what must be true of payments and of the log, reads of the past, weaknesses, random
//! sources, receivers of webhooks.

mod acknowledged;
mod acts;
mod alarms;
mod amended_events;
mod amendments;
mod bank;
mod broken;
mod by_hand;
mod by_hand_log;
mod checker;
mod clients;
mod closed_dates;
pub mod consumer;
pub mod counters;
mod dates;
mod ending;
mod event_origins;
mod expectations;
mod expiry;
mod faults;
pub mod files;
mod heads;
mod hostile;
pub mod intent;
pub mod journal;
mod lag;
mod lambda;
mod later;
pub mod laws;
mod log_loss;
mod metrics;
mod minutes;
mod month;
mod network;
mod onset;
mod operator;
mod outages;
mod readers;
pub mod receivers;
mod recounts;
mod redated;
mod redates;
mod reports;
mod restored;
mod restores;
mod reversed;
mod runbook;
mod search;
mod settings;
mod shrink;
mod story;
mod stream;
mod switches;
mod template;
mod time;
mod triggers;
mod unsendable;
mod webhooks;
mod world;
mod zone;

pub use acts::{Act, AmendmentCounts};
pub use alarms::{Raised, RaisedAlarms, alarm_names};
pub use faults::{FaultCounts, FaultKind};
pub use month::{Month, play, play_watched};
pub use outages::Outage;
pub use payments_machine::layers::weaken::Weakness;
use payments_machine::layers::{attributes, random};
pub use runbook::{Action, actions};
pub use search::{Case, SEEDS, search, table};
pub use settings::Settings;
pub use shrink::shrink;
