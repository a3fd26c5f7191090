//! The seam to the bank's transaction service: what is said, and how it travels.
//!
//! | module | holds |
//! |---|---|
//! | [`message`] | the request that goes out, the settlement result that comes back |
//! | [`transaction_queue`] | the way out: SQS, or a queue in this process |
//! | [`in_process`] | a standard SQS queue in memory |
//! | `sqs` | batches of SQS, and what its errors mean; only with the feature `sqs` |
//! | [`error`] | why a message was not sent |

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
