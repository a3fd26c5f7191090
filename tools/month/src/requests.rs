//! The queue of requests as SQS answers for it, and what was sent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_smithy_runtime_api::client::result::ConnectorError;
use chrono::{DateTime, Utc};
use payments_local::interceptor::{Answer, respond};
use payments_queue::Queue;
use serde_json::{Value, json};

use crate::faults::{FaultKind, Faults};

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
        let (mut successful, mut failed) = (Vec::new(), Vec::new());
        for entry in input["Entries"].as_array().into_iter().flatten() {
            let (id, body) = (&entry["Id"], entry["MessageBody"].as_str().unwrap_or_default());
            if faults.draw(FaultKind::SendRejected, 10) {
                failed.push(json!({ "Id": id, "Code": "InternalError", "SenderFault": false }));
                continue;
            }
            let taken = self.queue.send(body, now);
            let taken = taken.map_err(|error| ConnectorError::other(error.into(), None))?;
            let request = serde_json::from_str(body).unwrap_or_default();
            self.log().push(Sent { at: now, request });
            successful.push(json!({ "Id": id, "MessageId": taken.to_string(), "MD5OfMessageBody": "" }));
        }
        respond(200, json!({ "Successful": successful, "Failed": failed }).to_string())
    }

    /// Returns what was sent from a place on.
    pub(crate) fn sent_from(&self, place: usize) -> Vec<Sent> {
        self.log()[place..].to_vec()
    }

    /// Returns everything that was sent.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.log().clone()
    }

    fn log(&self) -> MutexGuard<'_, Vec<Sent>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
