//! The start of a function: configuration, clients, log, metrics, clock, deadlines.
//!
//! Only this crate reads the process's environment, the system's clock and the network's configuration.

mod client;
mod clock;
mod config;
#[cfg(feature = "aws")]
mod connection;
mod deadline;
mod metrics;
mod request;
mod retry;
mod telemetry;

pub use client::dynamodb_at;
#[cfg(feature = "aws")]
pub use client::{dynamodb, sqs, store};
pub use clock::Clock;
pub use config::{ConfigError, DataConfig, Lookup};
#[cfg(feature = "aws")]
pub use connection::connector;
pub use deadline::Deadline;
pub use metrics::Metrics;
pub use request::Request;
pub use retry::{Retries, Stop};
pub use telemetry::log_as_json;
