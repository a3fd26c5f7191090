//! The queue of payment requests: SQS on AWS, a queue in this process on one machine.

use std::fmt::Debug;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::error::QueueError;
use crate::in_process::Queue;
use crate::message::PaymentRequest;

/// The most requests of one send: as many as SQS gets in calls that are made at once, so that a send takes the time of one call.
pub const SENT_AT_ONCE: usize = 40;

/// A queue of payment requests.
#[async_trait]
pub trait TransactionQueue: Debug + Send + Sync {
    /// Sends the requests and returns a result for each, in their order.
    ///
    /// Every reply is awaited and read whole. A failed call fails all of its messages, a failed entry only its own. A
    /// failed message may have been sent all the same ([`QueueError::Unavailable`]); sending it again is harmless. An
    /// in-process queue receives the messages at `now`.
    async fn send(&self, requests: &[PaymentRequest], now: DateTime<Utc>) -> Vec<Result<(), QueueError>>;
}

#[async_trait]
impl TransactionQueue for Queue {
    async fn send(&self, requests: &[PaymentRequest], now: DateTime<Utc>) -> Vec<Result<(), QueueError>> {
        let send = |request: &PaymentRequest| {
            let body = request.to_json().map_err(QueueError::unwritable)?;
            Queue::send(self, body, now).map(drop).map_err(QueueError::from)
        };
        requests.iter().map(send).collect()
    }
}
