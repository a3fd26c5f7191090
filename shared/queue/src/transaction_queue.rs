//! The way out to the transaction service: SQS on AWS, a queue in this process on one machine.

use chrono::{DateTime, Utc};

use crate::error::QueueError;
use crate::in_process::Queue;
use crate::message::PaymentRequest;

/// Where payment requests go.
#[derive(Debug, Clone)]
pub enum TransactionQueue {
    /// A standard SQS queue.
    #[cfg(feature = "sqs")]
    Sqs {
        /// The client, with its own timeouts and retries.
        client: aws_sdk_sqs::Client,
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
            #[cfg(feature = "sqs")]
            Self::Sqs { client, queue_url } => crate::sqs::send(client, queue_url, &bodies).await,
        }
    }
}
