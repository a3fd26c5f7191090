//! The messages to and from the bank's transaction service, and their queues.
//!
//! | module | holds |
//! |---|---|
//! | [`message`] | the outgoing request, and the settlement result that comes back |
//! | [`transaction_queue`] | the queue of requests: SQS (`payments-sqs`), or a queue in this
//! process |
//! | [`in_process`] | a standard SQS queue in memory |
//! | [`error`] | messages that were not sent |

pub mod error;
pub mod in_process;
pub mod message;
pub mod transaction_queue;

pub use error::QueueError;
pub use in_process::Queue;
pub use message::{MessageKind, PaymentRequest, SettlementResult, SettlementResultError};
pub use transaction_queue::{SENT_AT_ONCE, TransactionQueue};
