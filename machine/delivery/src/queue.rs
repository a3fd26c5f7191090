//! The event source mapping from an SQS queue to a function.
//!
//! Source: *AWS Lambda Developer Guide*, "Using Lambda with Amazon SQS" (the event), "Configuring scaling behavior..."
//! (batches) and "Handling errors for an SQS event source in Lambda". A message that succeeded is deleted. A message that
//! failed is received again after the queue's visibility timeout, with a higher receive count, until the queue's redrive
//! policy moves it. Not simulated: scaling, filters, `md5OfBody`, the payload limit of 6 MB, and the wait for a full batch.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use payments_queue::Queue;
use payments_queue::in_process::{MAX_RECEIVED, Received};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::response::{self, BatchResponse};
use crate::settings;

/// The largest batch of a standard queue. Above 10, AWS requires a batching window.
pub const MAX_BATCH_SIZE: usize = 10_000;

/// A mapping's settings, under their names in CloudFormation.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct QueueMappingSettings {
    /// The queue, as an attribute of its resource.
    pub queue: String,
    /// Whether it is polled.
    #[serde(default = "settings::enabled")]
    pub enabled: bool,
    /// The most messages of one invocation: 1 to [`MAX_BATCH_SIZE`].
    pub batch_size: usize,
    /// The most seconds for which Lambda waits for a full batch.
    #[serde(default, rename = "MaximumBatchingWindowInSeconds")]
    pub batching_window: i64,
    /// Whether the function says which messages failed.
    #[serde(default, rename = "FunctionResponseTypes", deserialize_with = "response::reports_failures")]
    pub report_batch_item_failures: bool,
    /// The limit of concurrent invocations, if there is one.
    pub scaling_config: Option<ScalingConfig>,
}

/// A limit of concurrent invocations.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct ScalingConfig {
    /// The most invocations that run at once.
    pub maximum_concurrency: usize,
}

impl Default for QueueMappingSettings {
    /// Returns AWS's defaults: batches of 10, which succeed or fail as a whole.
    fn default() -> Self {
        Self {
            queue: String::new(),
            enabled: true,
            batch_size: 10,
            batching_window: 0,
            report_batch_item_failures: false,
            scaling_config: None,
        }
    }
}

/// The outcome of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueDelivery {
    /// The number of messages in the invocation.
    pub messages: usize,
    /// The number of messages that succeeded and were deleted. A message that was received again
    /// meanwhile, because its visibility timeout ended, is not deleted and not counted.
    pub deleted: usize,
    /// The function's error, or the fault of its response, if the whole batch failed.
    pub error: Option<String>,
}

/// A mapping. Several may share a queue, as Lambda's pollers do.
#[derive(Debug, Clone)]
pub struct QueueMapping {
    settings: QueueMappingSettings,
    queue: Queue,
}

impl QueueMapping {
    /// Creates a mapping of `queue`. The batch size is clamped to 1 and [`MAX_BATCH_SIZE`].
    pub fn new(settings: QueueMappingSettings, queue: Queue) -> Self {
        let batch_size = settings.batch_size.clamp(1, MAX_BATCH_SIZE);
        Self { settings: QueueMappingSettings { batch_size, ..settings }, queue }
    }

    /// Receives a batch and invokes the function with it. Returns nothing if there is no message to receive.
    ///
    /// If the future is dropped before it ends, the messages stay in flight, as when a function is killed.
    pub async fn step<Answer: Future<Output = Result<Value, String>>>(
        &self,
        now: DateTime<Utc>,
        function: impl Fn(Value) -> Answer,
    ) -> Option<QueueDelivery> {
        let batch = self.receive(now);
        if batch.is_empty() {
            return None;
        }
        let records: Vec<Value> = batch.iter().map(|message| self.record(message)).collect();
        let answer = function(json!({ "Records": records })).await;
        let (failed, error) = self.failures(&batch, answer);
        let done = batch.iter().filter(|message| !failed.contains(&message.message_id.to_string()));
        let deleted = done.filter(|message| self.queue.delete(&message.receipt_handle)).count();
        Some(QueueDelivery { messages: batch.len(), deleted, error })
    }

    /// Fills a batch by receives of ten.
    fn receive(&self, now: DateTime<Utc>) -> Vec<Received> {
        let mut batch = Vec::new();
        loop {
            let room = self.settings.batch_size - batch.len();
            let received = self.queue.receive(room.min(MAX_RECEIVED), now);
            if received.is_empty() {
                return batch;
            }
            batch.extend(received);
        }
    }

    /// Returns the ids of the failed messages, and the error of a batch that failed as a whole.
    fn failures(&self, batch: &[Received], answer: Result<Value, String>) -> (HashSet<String>, Option<String>) {
        let ids = || batch.iter().map(|message| message.message_id.to_string()).collect::<HashSet<_>>();
        let answer = match answer {
            Ok(_) if !self.settings.report_batch_item_failures => return (HashSet::new(), None),
            Ok(answer) => answer,
            Err(why) => return (ids(), Some(why)),
        };
        let known = ids();
        match response::read(&answer, |id| known.contains(id)) {
            BatchResponse::Success => (HashSet::new(), None),
            BatchResponse::Failures(failed) => (failed.into_iter().collect(), None),
            BatchResponse::Failure(why) => (known, Some(why.to_owned())),
        }
    }

    fn record(&self, message: &Received) -> Value {
        let milliseconds = |at: DateTime<Utc>| at.timestamp_millis().to_string();
        json!({
            "messageId": message.message_id.to_string(),
            "receiptHandle": message.receipt_handle.to_string(),
            "body": message.body,
            "attributes": {
                "ApproximateReceiveCount": message.receive_count.to_string(),
                "SentTimestamp": milliseconds(message.sent_at),
                "SenderId": "local",
                "ApproximateFirstReceiveTimestamp": milliseconds(message.first_received_at),
            },
            "messageAttributes": {},
            "eventSource": "aws:sqs",
            "eventSourceARN": format!("arn:aws:sqs:local:000000000000:{}", self.queue.settings().name),
            "awsRegion": "local",
        })
    }
}

#[cfg(test)]
mod tests;
