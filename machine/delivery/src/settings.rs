//! The settings of a stream mapping, under their names in CloudFormation.
//!
//! Only what `template.yaml` uses is here. A mapping starts at the oldest record and never discards records by age.

use chrono::TimeDelta;
use payments_queue::Queue;
use serde::{Deserialize, Deserializer};

use crate::filter::Filter;
use crate::response;

/// The largest batch size.
pub const MAX_BATCH_SIZE: usize = 10_000;

/// The longest batching window.
pub const MAX_BATCHING_WINDOW: TimeDelta = TimeDelta::seconds(300);

/// The longest tumbling window.
pub const MAX_TUMBLING_WINDOW: TimeDelta = TimeDelta::seconds(900);

/// The most retries; [`None`] is for ever.
pub const MAX_RETRY_ATTEMPTS: u32 = 10_000;

/// The settings of a mapping.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct StreamSettings {
    /// The function's name, which failure records mention.
    #[serde(skip)]
    pub function_name: String,
    /// The stream, as an attribute of its table.
    pub stream: String,
    /// Whether it is polled.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// The most records of one invocation: 1 to [`MAX_BATCH_SIZE`].
    pub batch_size: usize,
    /// The longest wait for a full batch: 0 to [`MAX_BATCHING_WINDOW`].
    #[serde(default, rename = "MaximumBatchingWindowInSeconds", deserialize_with = "seconds")]
    pub maximum_batching_window: TimeDelta,
    /// The records that the function sees; `None` is all of them.
    #[serde(rename = "FilterCriteria")]
    pub filter: Option<Filter>,
    /// The retries of a failing batch; `None`, which is -1 in CloudFormation, is for ever.
    #[serde(deserialize_with = "retry_attempts")]
    pub maximum_retry_attempts: Option<u32>,
    /// Whether a failing batch is split.
    #[serde(default)]
    pub bisect_batch_on_function_error: bool,
    /// Whether the function says which records failed.
    #[serde(default, rename = "FunctionResponseTypes", deserialize_with = "response::reports_failures")]
    pub report_batch_item_failures: bool,
    /// The length of tumbling windows, 1 second to [`MAX_TUMBLING_WINDOW`]; `None` for a mapping without windows.
    #[serde(default, rename = "TumblingWindowInSeconds", deserialize_with = "some_seconds")]
    pub tumbling_window: Option<TimeDelta>,
    /// The destination of reports about discarded batches.
    pub destination_config: Option<DestinationConfig>,
    /// The queue of that destination.
    #[serde(skip)]
    pub on_failure: Option<Queue>,
}

/// The destinations of a mapping.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct DestinationConfig {
    /// The destination of discarded batches.
    pub on_failure: Destination,
}

/// A destination.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "Type", content = "Destination", deny_unknown_fields)]
pub enum Destination {
    /// A queue, as an attribute of its resource.
    #[serde(rename = "SQS")]
    Queue(String),
}

/// Reads a number of seconds.
///
/// # Errors
/// If it is not a whole number of seconds.
pub fn seconds<'n, D: Deserializer<'n>>(from: D) -> Result<TimeDelta, D::Error> {
    u32::deserialize(from).map(|seconds| TimeDelta::seconds(seconds.into()))
}

fn some_seconds<'n, D: Deserializer<'n>>(from: D) -> Result<Option<TimeDelta>, D::Error> {
    seconds(from).map(Some)
}

fn retry_attempts<'n, D: Deserializer<'n>>(from: D) -> Result<Option<u32>, D::Error> {
    i64::deserialize(from).map(|attempts| u32::try_from(attempts).ok())
}

/// A mapping is enabled by default.
pub(crate) fn enabled() -> bool {
    true
}

impl StreamSettings {
    /// Returns AWS's defaults: batches of 100, retried for ever.
    pub fn for_function(function_name: &str) -> Self {
        Self {
            function_name: function_name.to_owned(),
            stream: String::new(),
            enabled: true,
            batch_size: 100,
            maximum_batching_window: TimeDelta::zero(),
            filter: None,
            maximum_retry_attempts: None,
            bisect_batch_on_function_error: false,
            report_batch_item_failures: false,
            tumbling_window: None,
            destination_config: None,
            on_failure: None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        let windows = TimeDelta::seconds(1)..=MAX_TUMBLING_WINDOW;
        let waits = TimeDelta::zero()..=MAX_BATCHING_WINDOW;
        for (fits, name) in [
            ((1..=MAX_BATCH_SIZE).contains(&self.batch_size), "BatchSize"),
            (waits.contains(&self.maximum_batching_window), "MaximumBatchingWindowInSeconds"),
            (self.maximum_retry_attempts.is_none_or(|n| n <= MAX_RETRY_ATTEMPTS), "MaximumRetryAttempts"),
            (self.tumbling_window.is_none_or(|length| windows.contains(&length)), "TumblingWindowInSeconds"),
        ] {
            if !fits {
                return Err(SettingsError(name));
            }
        }
        Ok(())
    }
}

/// A setting is outside the range that AWS accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is outside its range")]
pub struct SettingsError(pub &'static str);
