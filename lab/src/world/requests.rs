//! The queue of requests as SQS answers for it, and what was sent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_sdk_sqs::config::retry::RetryPartition;
use aws_sdk_sqs::config::{BehaviorVersion, Builder, Credentials, Region};
use aws_smithy_runtime_api::client::result::ConnectorError;
use chrono::{DateTime, Utc};
use payments_machine::Interceptor;
use payments_machine::interceptor::{Answer, respond};
use payments_queue::Queue;
use payments_sqs::SqsQueue;
use serde_json::{Value, json};

use crate::plans::faults::{FaultKind, Faults};

/// Takes the messages of a SendMessageBatch, except those at the places that are rejected. Returns the requests among
/// them and SQS's answer.
///
/// # Errors
/// If the queue fails.
pub fn accept(
    queue: &Queue,
    input: &Value,
    now: DateTime<Utc>,
    mut is_rejected: impl FnMut(usize) -> bool,
) -> Result<(Vec<Value>, Value), ConnectorError> {
    let (mut accepted, mut successful, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for (place, entry) in input["Entries"].as_array().into_iter().flatten().enumerate() {
        let (id, body) = (&entry["Id"], entry["MessageBody"].as_str().unwrap_or_default());
        if is_rejected(place) {
            failed.push(json!({ "Id": id, "Code": "InternalError", "SenderFault": false }));
            continue;
        }
        let message = queue.send(body, now).map_err(|error| ConnectorError::other(error.into(), None))?;
        accepted.push(serde_json::from_str(body).unwrap_or_default());
        successful.push(json!({ "Id": id, "MessageId": message.to_string(), "MD5OfMessageBody": "" }));
    }
    Ok((accepted, json!({ "Successful": successful, "Failed": failed })))
}

/// Returns the queue of requests through SQS's own SDK, over an interceptor, with a retry quota of this name.
pub fn queue_over(interceptor: Interceptor, quota: String, change: impl FnOnce(Builder) -> Builder) -> SqsQueue {
    let config = aws_sdk_sqs::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("local"))
        .credentials_provider(Credentials::new("local", "local", None, None, "lab"))
        .http_client(interceptor)
        .retry_partition(RetryPartition::new(quota));
    let client = aws_sdk_sqs::Client::from_conf(change(config).build());
    SqsQueue { client, queue_url: "http://127.0.0.1:9/payment-requests".to_owned() }
}

/// A request that the queue has accepted.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    /// When.
    pub(crate) at: DateTime<Utc>,
    /// The request.
    pub(crate) request: Value,
}

/// The queue. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct RequestQueue {
    queue: Queue,
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl RequestQueue {
    pub(crate) fn over(queue: Queue) -> Self {
        Self { queue, sent: Arc::default() }
    }

    /// Takes a SendMessageBatch. Any of its messages can be rejected.
    pub(crate) fn take(&self, input: &Value, now: DateTime<Utc>, faults: &Faults) -> Answer {
        let (accepted, answer) = accept(&self.queue, input, now, |_| faults.draw(FaultKind::SendRejected, 10))?;
        self.log().extend(accepted.into_iter().map(|request| Sent { at: now, request }));
        respond(200, answer.to_string())
    }

    /// Returns what was sent from a place on.
    pub(crate) fn from(&self, place: usize) -> Vec<Sent> {
        self.log()[place..].to_vec()
    }

    /// Whether a payment was sent at a dispatch attempt.
    pub(crate) fn has(&self, payment_id: &str, attempt: u64) -> bool {
        let is_it = |sent: &Sent| sent.request["paymentId"] == payment_id && sent.request["dispatchAttempt"] == attempt;
        self.log().iter().rev().any(is_it)
    }

    /// Returns how much was sent.
    pub(crate) fn count(&self) -> usize {
        self.log().len()
    }

    fn log(&self) -> MutexGuard<'_, Vec<Sent>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
