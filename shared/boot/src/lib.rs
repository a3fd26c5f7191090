//! The start of a function: configuration, clients, log, metrics, clock, deadlines.
//!
//! Only this crate reads the process's environment, the system's clock and the network's configuration.

#[cfg(feature = "aws")]
mod aws;
mod client;
mod clock;
mod config;
mod deadline;
mod metrics;
mod request;
mod telemetry;
mod webhook_master;

#[cfg(feature = "aws")]
pub use aws::{connector, dynamodb, event_bridge, http_store, lambda, sqs, store, switched_sqs, switched_store};
pub use client::{HTTP_CALL_TIMEOUT, SWITCHED_CALL_TIMEOUT, dynamodb_at, switched_timeouts};
pub use clock::Clock;
pub use config::{ConfigError, DataConfig, Lookup};
pub use deadline::{Deadline, HTTP_BUDGET, MARGIN};
pub use metrics::{Metrics, READ_METRICS};
pub use request::Request;
pub use telemetry::{log_as_json, log_filter, version};
pub use webhook_master::{WebhookMaster, WebhookMasterError};
