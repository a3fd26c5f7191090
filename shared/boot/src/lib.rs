//! What a function's start needs: configuration, clients, the log and the clock. The only place
//! that looks at the process's environment, the wall clock or the network's configuration.

mod client;
mod clock;
mod config;
mod connection;
mod deadline;
mod metrics;
pub mod pace;
mod telemetry;

pub use client::{dynamodb, sqs};
pub use clock::Clock;
pub use config::{ConfigError, DataConfig, Lookup};
pub use connection::connector;
pub use deadline::Deadline;
pub use metrics::Metrics;
pub use telemetry::log_as_json;
