//! AWS on one machine: an embedded DynamoDB, queues, schedules, and the delivery of their events to functions.
//!
//! The crate links no function: [`Handlers`] are values that a caller gives it.

pub mod client;
pub mod codes;
pub mod engine;
pub mod environment;
pub mod event;
pub mod given;
mod handlers;
pub mod layers;
pub mod links;
pub mod payload;
pub mod progress;
pub mod queues;
pub mod schedule;
pub mod server;
mod stack;
pub mod template;
mod time;
pub mod transaction_service;
pub mod triggers;

pub use engine::{Direct, Engine};
pub use environment::Environment;
pub use handlers::invocation::{self, LocalRun, Run};
pub use handlers::{Handlers, Started};
pub use layers::record::{CapacityUse, Recorder};
pub use layers::{Call, Fate, Layers};
pub use queues::Queues;
pub use stack::{EngineChoice, Stack};
pub use template::{Given, Template, yaml};
pub use time::Time;
