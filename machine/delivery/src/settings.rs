//! The settings of a stream mapping, under their names in CloudFormation.
//!
//! Only what `template.yaml` uses is here. A mapping starts at the oldest record and never discards records by age.

use chrono::TimeDelta;
use payments_queue::Queue;

use crate::filter::Filter;

/// The largest batch size.
pub const MAX_BATCH_SIZE: usize = 10_000;

/// The longest batching window.
pub const MAX_BATCHING_WINDOW: TimeDelta = TimeDelta::seconds(300);

/// The longest tumbling window.
pub const MAX_TUMBLING_WINDOW: TimeDelta = TimeDelta::seconds(900);

/// The most retries; [`None`] is for ever.
pub const MAX_RETRY_ATTEMPTS: u32 = 10_000;

/// The settings of a mapping.
#[derive(Debug, Clone)]
pub struct StreamSettings {
    /// The function's name, which failure records mention.
    pub function_name: String,
    /// The most records of one invocation: 1 to [`MAX_BATCH_SIZE`].
    pub batch_size: usize,
    /// How long to wait for a full batch: 0 to [`MAX_BATCHING_WINDOW`].
    pub maximum_batching_window: TimeDelta,
    /// The records that the function sees; `None` is all of them.
    pub filter: Option<Filter>,
    /// How often a failing batch is retried; `None` is for ever.
    pub maximum_retry_attempts: Option<u32>,
    /// Whether a failing batch is split.
    pub bisect_batch_on_function_error: bool,
    /// Whether the function says which records failed (`FunctionResponseTypes`).
    pub report_batch_item_failures: bool,
    /// The length of tumbling windows, 1 second to [`MAX_TUMBLING_WINDOW`]; `None` is no windows.
    pub tumbling_window: Option<TimeDelta>,
    /// The queue of records of discarded batches.
    pub on_failure: Option<Queue>,
}

impl StreamSettings {
    /// Returns AWS's defaults: batches of 100, retried for ever.
    pub fn of(function_name: &str) -> Self {
        Self {
            function_name: function_name.to_owned(),
            batch_size: 100,
            maximum_batching_window: TimeDelta::zero(),
            filter: None,
            maximum_retry_attempts: None,
            bisect_batch_on_function_error: false,
            report_batch_item_failures: false,
            tumbling_window: None,
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
