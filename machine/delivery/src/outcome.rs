//! What one step of a stream mapping did.

use crate::page::ShardId;
use crate::window::Invocation;

/// What one step did with one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The shard.
    pub shard: ShardId,
    /// Why the function was invoked.
    pub invocation: Invocation,
    /// How many records the function was invoked with.
    pub records: usize,
    /// How the invocation ended.
    pub outcome: DeliveryOutcome,
}

/// How an invocation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// Everything succeeded.
    Succeeded,
    /// The last `remaining` records, or the end of the window, will be delivered again, perhaps in smaller batches.
    Retrying {
        /// The function's error, or why its response is invalid.
        why: String,
        /// How many records are left.
        remaining: usize,
    },
    /// The retries of these records are exhausted. The on-failure destination knows which they are.
    Discarded {
        /// How many.
        records: usize,
    },
}
