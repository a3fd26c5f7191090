//! The queue of payment requests: SQS on AWS, a queue in this process on one machine.

use chrono::{DateTime, Utc};

use crate::error::QueueError;
use crate::in_process::Queue;
use crate::message::PaymentRequest;

/// A queue of payment requests.
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
    /// Sends the requests and returns a result for each, in their order.
    ///
    /// Every reply is awaited and read whole. A failed call fails all of its messages, a failed entry
    /// only its own. A failed message may have been sent all the same ([`QueueError::Unavailable`]);
    /// sending it again is harmless. `now` is when an in-process queue receives the messages.
    pub async fn send(&self, requests: &[PaymentRequest], now: DateTime<Utc>) -> Vec<Result<(), QueueError>> {
        let body = |request: &PaymentRequest| request.to_json().map_err(QueueError::unwritable);
        match self {
            Self::InProcess(queue) => {
                let sent =
                    requests.iter().map(|request| queue.send(body(request)?, now).map(drop).map_err(QueueError::from));
                sent.collect()
            }
            #[cfg(feature = "sqs")]
            Self::Sqs { client, queue_url } => {
                let message =
                    |request| crate::sqs::Message { group: PaymentRequest::account(request), body: body(request) };
                let messages: Vec<_> = requests.iter().map(message).collect();
                crate::sqs::send(client, queue_url, &messages).await
            }
        }
    }
}
