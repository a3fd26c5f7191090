//! The way out to the transaction service: SQS on AWS, a queue in this process on one machine.

use std::collections::HashMap;
use std::ops::Range;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use chrono::{DateTime, Utc};
use futures::StreamExt;

use crate::error::QueueError;
use crate::in_process::Queue;
use crate::message::PaymentRequest;

/// The most messages that one SendMessageBatch takes.
pub const MAX_BATCH_MESSAGES: usize = 10;

/// The most bytes that one SendMessageBatch is given. SQS documents 1 MiB for the sum of a batch
/// since 2025 and 256 KiB before; ten payments of 8 KB are 80 KB, so the older limit costs nothing.
pub const MAX_BATCH_BYTES: usize = 256 * 1024;

/// How many batches are under way at once: a Lambda batch of 100 records is 10 of them.
const CONCURRENT_BATCHES: usize = 4;

/// Where payment requests go.
#[derive(Debug, Clone)]
pub enum TransactionQueue {
    /// A standard SQS queue.
    Sqs {
        /// The client, with its own timeouts and retries.
        client: Client,
        /// The queue's URL.
        queue_url: String,
    },
    /// A queue in this process.
    InProcess(Queue),
}

impl TransactionQueue {
    /// Sends the requests and says of each, in their order, whether it was taken.
    ///
    /// Every reply is awaited and read whole: when this returns, no send is under way. A failed call
    /// fails all of its messages; a failed entry only its own. An error leaves open whether the
    /// message was taken ([`QueueError`] says when), and sending it again is harmless. `now` is the
    /// time at which an in-process queue takes the messages.
    pub async fn send(&self, requests: &[PaymentRequest], now: DateTime<Utc>) -> Vec<Result<(), QueueError>> {
        let bodies: Vec<_> = requests.iter().map(|request| request.to_json().map_err(QueueError::unwritable)).collect();
        match self {
            Self::InProcess(queue) => {
                bodies.into_iter().map(|body| queue.send(body?, now).map(drop).map_err(QueueError::from)).collect()
            }
            Self::Sqs { client, queue_url } => {
                let batches = batches(&bodies);
                // `buffered` keeps the order and polls every batch to its end.
                futures::stream::iter(batches.into_iter().map(|batch| send_batch(client, queue_url, &bodies[batch])))
                    .buffered(CONCURRENT_BATCHES)
                    .flat_map(futures::stream::iter)
                    .collect()
                    .await
            }
        }
    }
}

/// A body, or why there is none.
type Body = Result<String, QueueError>;

/// Cuts the bodies into runs that one SendMessageBatch takes.
fn batches(bodies: &[Body]) -> Vec<Range<usize>> {
    let mut batches: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0;
    for (index, body) in bodies.iter().enumerate() {
        let size = body.as_ref().map_or(0, String::len);
        match batches.last_mut() {
            Some(batch) if batch.len() < MAX_BATCH_MESSAGES && bytes + size <= MAX_BATCH_BYTES => {
                batch.end = index + 1;
                bytes += size;
            }
            _ => {
                batches.push(index..index + 1);
                bytes = size;
            }
        }
    }
    batches
}

/// Sends one batch and says of each of its bodies whether it was taken.
async fn send_batch(client: &Client, queue_url: &str, bodies: &[Body]) -> Vec<Result<(), QueueError>> {
    let mut entries = Vec::with_capacity(bodies.len());
    for (index, body) in bodies.iter().enumerate() {
        let Ok(body) = body else { continue };
        // Only a missing id or body could fail here, and both are given.
        if let Ok(entry) = SendMessageBatchRequestEntry::builder().id(index.to_string()).message_body(body).build() {
            entries.push(entry);
        }
    }
    if entries.is_empty() {
        return bodies.iter().map(|body| body.clone().map(drop)).collect();
    }
    let reply = client.send_message_batch().queue_url(queue_url).set_entries(Some(entries)).send().await;
    let mut said: HashMap<String, Result<(), QueueError>> = HashMap::new();
    let silent = match reply {
        Ok(reply) => {
            said.extend(reply.successful.iter().map(|entry| (entry.id.clone(), Ok(()))));
            said.extend(reply.failed.iter().map(|entry| (entry.id.clone(), Err(QueueError::of_entry(entry)))));
            QueueError::unmentioned()
        }
        Err(error) => QueueError::of_call(error),
    };
    let answer = |(index, body): (usize, &Body)| {
        body.as_ref().map_err(QueueError::clone)?;
        said.get(&index.to_string()).cloned().unwrap_or_else(|| Err(silent.clone()))
    };
    bodies.iter().enumerate().map(answer).collect()
}

#[cfg(test)]
mod tests;
