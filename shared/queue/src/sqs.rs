//! Sending by SQS: batches within its limits, and what its errors mean.

use std::collections::HashMap;
use std::error::Error;
use std::ops::Range;
use std::sync::Arc;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::{BatchResultErrorEntry, SendMessageBatchRequestEntry};
use futures::StreamExt as _;

use crate::error::QueueError;

/// The most messages that one SendMessageBatch takes.
pub const MAX_BATCH_MESSAGES: usize = 10;

/// The most bytes that one SendMessageBatch is given. SQS documents 1 MiB for the sum of a batch
/// since 2025 and 256 KiB before; ten payments of 8 KB are 80 KB, so the older limit costs nothing.
pub const MAX_BATCH_BYTES: usize = 256 * 1024;

/// How many batches are under way at once: a Lambda batch of 100 records is 10 of them.
const CONCURRENT_BATCHES: usize = 4;

/// A request's JSON, or why there is none.
type Body = Result<String, QueueError>;

/// Sends the bodies and returns one result for each, in their order.
pub(crate) async fn send(client: &Client, queue_url: &str, bodies: &[Body]) -> Vec<Result<(), QueueError>> {
    // `buffered` keeps the order and polls every batch to its end.
    futures::stream::iter(batches(bodies).into_iter().map(|batch| send_batch(client, queue_url, &bodies[batch])))
        .buffered(CONCURRENT_BATCHES)
        .flat_map(futures::stream::iter)
        .collect()
        .await
}

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

/// What SQS says of one entry of a batch.
#[derive(Debug, thiserror::Error)]
#[error("{code}: {message}")]
struct Entry {
    code: String,
    message: String,
}

/// SQS answered the batch and named this entry neither as sent nor as failed.
#[derive(Debug, thiserror::Error)]
#[error("the reply does not mention the message")]
struct Unmentioned;

/// The codes that mean "the same call succeeds later".
const THROTTLES: [&str; 5] = ["RequestThrottled", "ThrottlingException", "Throttling", "OverLimit", "KmsThrottled"];

/// A fault of SQS's own, whichever protocol spelt it.
const TROUBLES: [&str; 4] = ["InternalError", "InternalFailure", "ServiceUnavailable", "InternalServerError"];

impl QueueError {
    /// The whole call failed.
    pub(crate) fn of_call<E>(error: SdkError<E>) -> Self
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        let status = error.raw_response().map(|response| response.status().as_u16());
        let code = error.as_service_error().and_then(ProvideErrorMetadata::code).map(str::to_owned);
        // A reply that cannot be read is a service error too, with the status of a success.
        let ours = matches!(error, SdkError::ConstructionFailure(_))
            || (matches!(error, SdkError::ServiceError(_))
                && status.is_some_and(|status| (400..500).contains(&status)));
        let cause = Arc::new(error);
        match code.as_deref().map(bare) {
            Some(code) if THROTTLES.contains(&code) => Self::Throttled(cause),
            _ if status == Some(429) => Self::Throttled(cause),
            Some(code) if TROUBLES.contains(&code) => Self::Unavailable(cause),
            _ if ours => Self::Refused(cause),
            _ => Self::Unavailable(cause),
        }
    }

    /// The call succeeded and this entry of it did not.
    pub(crate) fn of_entry(entry: &BatchResultErrorEntry) -> Self {
        let cause = Arc::new(Entry { code: entry.code.clone(), message: entry.message.clone().unwrap_or_default() });
        if THROTTLES.contains(&bare(&entry.code)) {
            Self::Throttled(cause)
        } else if entry.sender_fault {
            Self::Refused(cause)
        } else {
            Self::Unavailable(cause)
        }
    }

    /// The call succeeded and its reply is silent about this entry.
    pub(crate) fn unmentioned() -> Self {
        Self::Unavailable(Arc::new(Unmentioned))
    }
}

/// A code without the namespace that the query protocol puts before it
/// (`AWS.SimpleQueueService.RequestThrottled`).
fn bare(code: &str) -> &str {
    code.rsplit(['.', '#']).next().unwrap_or(code)
}

#[cfg(test)]
mod tests;
