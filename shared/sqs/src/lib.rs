//! Payment requests over SQS: sending in batches, and SQS's errors.
//!
//! The crate is separate because `cargo local` needs no SDK of SQS.

use std::collections::HashMap;
use std::error::Error;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::{BatchResultErrorEntry, SendMessageBatchRequestEntry};
use chrono::{DateTime, Utc};
use futures::StreamExt as _;
use payments_model::account::MAX_ACCOUNT_ID_BYTES;
use payments_model::{AccountId, OutageKind};
use payments_queue::{PaymentRequest, QueueError, SENT_AT_ONCE, TransactionQueue};

/// The most messages of one SendMessageBatch.
pub const MAX_BATCH_MESSAGES: usize = 10;

/// The most bytes of one SendMessageBatch. SQS allows 1 MiB since 2025, and allowed 256 KiB before.
/// Ten payments of 8 KB are 80 KB, so the older limit is enough.
pub const MAX_BATCH_BYTES: usize = 256 * 1024;

/// The most batches that are sent at once. A Lambda batch of 100 records makes 10 of them.
pub const CONCURRENT_BATCHES: usize = 4;
const _: () = assert!(SENT_AT_ONCE <= MAX_BATCH_MESSAGES * CONCURRENT_BATCHES);

/// A standard SQS queue.
#[derive(Debug, Clone)]
pub struct SqsQueue {
    /// The client, with its own timeouts and retries.
    pub client: Client,
    /// The queue's URL.
    pub queue_url: String,
}

#[async_trait]
impl TransactionQueue for SqsQueue {
    async fn send(&self, requests: &[PaymentRequest], _now: DateTime<Utc>) -> Vec<Result<(), QueueError>> {
        let body = |request: &PaymentRequest| request.to_json().map_err(QueueError::unwritable);
        let messages: Vec<_> =
            requests.iter().map(|request| Message { group: request.account(), body: body(request) }).collect();
        send(&self.client, &self.queue_url, &messages).await
    }
}

/// A message to send.
#[derive(Debug)]
struct Message<'r> {
    /// Its group. Among the messages that wait, SQS prefers those of groups with few in flight, so an account with many
    /// payments does not delay the others (*Amazon SQS fair queues*). In a standard queue, a group changes nothing else.
    /// A group has at most 128 letters, digits and punctuation marks, and an account id is shorter and has no others.
    group: &'r AccountId,
    /// Its body, or the reason why it cannot be encoded.
    body: Result<String, QueueError>,
}

/// SQS's limit of a group.
const MAX_GROUP_BYTES: usize = 128;
const _: () = assert!(MAX_ACCOUNT_ID_BYTES <= MAX_GROUP_BYTES);

/// Sends the messages and returns one result for each, in their order.
async fn send(client: &Client, queue_url: &str, messages: &[Message<'_>]) -> Vec<Result<(), QueueError>> {
    // `buffered` keeps the order and polls every batch to its end.
    futures::stream::iter(batches(messages).into_iter().map(|batch| send_batch(client, queue_url, &messages[batch])))
        .buffered(CONCURRENT_BATCHES)
        .flat_map(futures::stream::iter)
        .collect()
        .await
}

/// Splits the messages into ranges that fit one SendMessageBatch.
fn batches(messages: &[Message<'_>]) -> Vec<Range<usize>> {
    let mut batches: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0;
    for (index, message) in messages.iter().enumerate() {
        let size = message.body.as_ref().map_or(0, String::len);
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

/// Sends one batch and returns a result for each of its messages.
async fn send_batch(client: &Client, queue_url: &str, messages: &[Message<'_>]) -> Vec<Result<(), QueueError>> {
    let mut entries = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        let Ok(body) = &message.body else { continue };
        let entry = SendMessageBatchRequestEntry::builder().id(index.to_string()).message_body(body);
        // Building fails only without an id or a body, and both are set.
        if let Ok(entry) = entry.message_group_id(message.group.as_str()).build() {
            entries.push(entry);
        }
    }
    if entries.is_empty() {
        return messages.iter().map(|message| message.body.clone().map(drop)).collect();
    }
    let reply = client.send_message_batch().queue_url(queue_url).set_entries(Some(entries)).send().await;
    let mut results: HashMap<String, Result<(), QueueError>> = HashMap::new();
    let unmentioned = match reply {
        Ok(reply) => {
            results.extend(reply.successful.iter().map(|entry| (entry.id.clone(), Ok(()))));
            results.extend(reply.failed.iter().map(|entry| (entry.id.clone(), Err(entry_error(entry)))));
            unmentioned()
        }
        Err(error) => call_error(error),
    };
    let answer = |(index, message): (usize, &Message<'_>)| {
        message.body.as_ref().map_err(QueueError::clone)?;
        results.get(&index.to_string()).cloned().unwrap_or_else(|| Err(unmentioned.clone()))
    };
    messages.iter().enumerate().map(answer).collect()
}

/// SQS's error for one entry of a batch.
#[derive(Debug, thiserror::Error)]
#[error("{code}: {message}")]
struct Entry {
    code: String,
    message: String,
}

/// SQS replied to the batch, but not about this entry.
#[derive(Debug, thiserror::Error)]
#[error("the reply does not mention the message")]
struct Unmentioned;

/// Error codes of calls that succeed later.
const THROTTLES: [&str; 5] = ["RequestThrottled", "ThrottlingException", "Throttling", "OverLimit", "KmsThrottled"];

/// Error codes of SQS's own failures, in either protocol.
const TROUBLES: [&str; 4] = ["InternalError", "InternalFailure", "ServiceUnavailable", "InternalServerError"];

/// The kind of a failed call of SQS or Lambda.
pub fn kind_of<E: ProvideErrorMetadata>(error: &SdkError<E>) -> OutageKind {
    let status = error.raw_response().map(|response| response.status().as_u16());
    let code = error.as_service_error().and_then(ProvideErrorMetadata::code).map(bare);
    // An unreadable reply is a service error too, with the status of a success.
    let ours = matches!(error, SdkError::ConstructionFailure(_))
        || (matches!(error, SdkError::ServiceError(_)) && status.is_some_and(|status| (400..500).contains(&status)));
    match code {
        Some(code) if THROTTLES.contains(&code) => OutageKind::Throttled,
        _ if status == Some(429) => OutageKind::Throttled,
        Some(code) if TROUBLES.contains(&code) => OutageKind::Unavailable,
        _ if ours => OutageKind::Broken,
        _ => OutageKind::Unavailable,
    }
}

/// The error of a failed call.
fn call_error<E>(error: SdkError<E>) -> QueueError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let kind = kind_of(&error);
    let cause = Arc::new(error);
    match kind {
        OutageKind::Throttled => QueueError::Throttled(cause),
        OutageKind::Unavailable => QueueError::Unavailable(cause),
        OutageKind::Broken => QueueError::Refused(cause),
    }
}

/// The error of a failed entry in a successful call.
fn entry_error(entry: &BatchResultErrorEntry) -> QueueError {
    let cause = Arc::new(Entry { code: entry.code.clone(), message: entry.message.clone().unwrap_or_default() });
    if THROTTLES.contains(&bare(&entry.code)) {
        QueueError::Throttled(cause)
    } else if entry.sender_fault {
        QueueError::Refused(cause)
    } else {
        QueueError::Unavailable(cause)
    }
}

/// The error of an entry that a successful call does not mention.
fn unmentioned() -> QueueError {
    QueueError::Unavailable(Arc::new(Unmentioned))
}

/// A code without its namespace, which the query protocol adds (`AWS.SimpleQueueService.RequestThrottled`).
fn bare(code: &str) -> &str {
    code.rsplit(['.', '#']).next().unwrap_or(code)
}

#[cfg(test)]
mod tests;
