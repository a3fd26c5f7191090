//! The layer that answers SQS's calls from a queue in this process, so that SendMessageBatch is tested, too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use aws_smithy_runtime_api::client::result::ConnectorError;
use chrono::{DateTime, Utc};
use payments_boot::Clock;
use payments_queue::Queue;
use serde_json::{Value, json};

use super::call::{Answer, Call, Fate, Layer, Next, Reply};
use super::lag::Changes;

/// A message that the queue has accepted.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The time at which it was accepted.
    pub at: DateTime<Utc>,
    /// The number of changes of the hot table by then.
    pub after_changes: usize,
    /// The message's body.
    pub request: Value,
}

/// The layer. Clones share the queue and what was sent.
#[derive(Clone)]
pub struct Sqs {
    queue: Queue,
    clock: Clock,
    changes: Changes,
    is_rejected: Arc<dyn Fn() -> bool + Send + Sync>,
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl Sqs {
    /// Creates a layer over a queue. `is_rejected` says whether SQS rejects the next message of a batch.
    pub fn over(
        queue: &Queue,
        clock: &Clock,
        changes: &Changes,
        is_rejected: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        let queue = queue.clone();
        let clock = clock.clone();
        let changes = changes.clone();
        Self { queue, clock, changes, is_rejected: Arc::new(is_rejected), sent: Arc::default() }
    }

    /// Returns what was sent. Nothing can be sent while it is held.
    pub fn sent(&self) -> MutexGuard<'_, Vec<Sent>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Layer for Sqs {
    async fn carry(&self, call: Call, next: Next) -> Answer {
        if !call.is_to_sqs() {
            return next.send(call).await;
        }
        let (now, after_changes) = (self.clock.instant(), self.changes.log().len());
        let (mut successful, mut failed) = (Vec::new(), Vec::new());
        for (place, entry) in call.input()["Entries"].as_array().into_iter().flatten().enumerate() {
            let (id, body) = (&entry["Id"], entry["MessageBody"].as_str().unwrap_or_default());
            if (place == 0 && call.fate == Fate::RefuseFirstEntry) || (self.is_rejected)() {
                failed.push(json!({ "Id": id, "Code": "InternalError", "SenderFault": false }));
                continue;
            }
            let message = self.queue.send(body, now).map_err(|error| ConnectorError::other(error.into(), None))?;
            self.sent().push(Sent { at: now, after_changes, request: serde_json::from_str(body).unwrap_or_default() });
            successful.push(json!({ "Id": id, "MessageId": message.to_string(), "MD5OfMessageBody": "" }));
        }
        Ok(Reply::from_json(200, json!({ "Successful": successful, "Failed": failed })))
    }
}
