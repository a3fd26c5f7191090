//! Outcomes of one step of a stream mapping.

use crate::page::ShardId;
use crate::window::Invocation;

/// The outcome of one step with one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The shard.
    pub shard: ShardId,
    /// The reason of the invocation.
    pub invocation: Invocation,
    /// The number of records in the invocation.
    pub records: usize,
    /// The outcome of the invocation.
    pub outcome: DeliveryOutcome,
}

/// The outcome of an invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// Everything succeeded.
    Succeeded,
    /// The last `remaining` records, or the end of the window, will be delivered again, perhaps in smaller batches.
    Retrying {
        /// The function's error, or the fault of its response.
        why: String,
        /// The number of records that are left.
        remaining: usize,
    },
    /// The retries of these records are exhausted. The on-failure destination knows which they are.
    Discarded {
        /// The number of records.
        records: usize,
    },
}
