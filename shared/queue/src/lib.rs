//! The messages to and from the bank's transaction service, and their queues.
//!
//! | module | holds |
//! |---|---|
//! | [`message`] | the request that goes out, the settlement result that comes back |
//! | [`transaction_queue`] | where requests are sent: SQS, or a queue in this process |
//! | [`in_process`] | a standard SQS queue in memory |
//! | `sqs` | sending to SQS in batches, and its errors; only with the feature `sqs` |
//! | [`error`] | messages that were not sent |

pub mod error;
pub mod in_process;
pub mod message;
#[cfg(feature = "sqs")]
pub mod sqs;
pub mod transaction_queue;

pub use error::QueueError;
pub use in_process::Queue;
pub use message::{PaymentRequest, SettlementResult, SettlementResultError};
pub use transaction_queue::TransactionQueue;
