//! The outcomes of a sweep and of a redrive, which the function returns and emits as metrics.

use metrique_writer::Entry;
use serde::Serialize;

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SweeperOutcome {
    /// The outcome of a sweep.
    Sweep(SweepOutcome),
    /// The outcome of a redrive.
    Redrive(RedriveOutcome),
}

/// The outcome of a sweep.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Entry)]
#[serde(rename_all = "camelCase")]
#[entry(rename_all = "PascalCase")]
pub struct SweepOutcome {
    /// Payments that the sweep claimed.
    pub claimed: u64,
    /// Payments that the index showed as scheduled, but that were claimed or cancelled since.
    pub already_claimed: u64,
    /// Payments that cannot be read or claimed. The log says why.
    #[entry(name = "SweepFailed")]
    pub failed: u64,
    /// Payments that are left for the next sweep.
    pub remaining: u64,
    /// Whether more payments than `remaining` may be left.
    #[entry(ignore)]
    pub remaining_is_lower_bound: bool,
    /// Shards that this sweep did not finish, because DynamoDB throttled them or did not answer.
    pub shards_given_up: u64,
    /// The longest time for which a payment could have been claimed, in seconds, until its claim or, if this sweep leaves
    /// the payment, until now. `None` if a shard's payments could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_overdue_seconds: Option<u64>,
}

/// The outcome of a redrive.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Entry)]
#[serde(rename_all = "camelCase")]
#[entry(rename_all = "PascalCase")]
pub struct RedriveOutcome {
    /// Payments that the run redrove.
    pub redriven: u64,
    /// Pending payments whose wait for a redrive is not over.
    #[entry(ignore)]
    pub waiting: u64,
    /// Pending payments without dispatch attempts left. An operator has to act.
    #[entry(name = "StuckPending")]
    pub stuck: u64,
    /// Payments that cannot be read. The log says why.
    #[entry(name = "RedriveFailed")]
    pub failed: u64,
    /// Shards that this run did not finish, because its time was over, or DynamoDB throttled them,
    /// did not answer or rejected a call.
    #[entry(name = "RedriveShardsUnfinished")]
    pub shards_unfinished: u64,
}

impl SweepOutcome {
    /// The outcome before anything was read.
    pub(crate) fn empty() -> Self {
        Self { oldest_overdue_seconds: Some(0), ..Self::default() }
    }

    /// Counts a payment that could have been claimed for this long. `None` is an unknown time, and makes the longest time
    /// unknown, too.
    pub(crate) fn count_overdue(&mut self, seconds: Option<u64>) {
        self.oldest_overdue_seconds = self.oldest_overdue_seconds.zip(seconds).map(|(one, other)| one.max(other));
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.claimed += other.claimed;
        self.already_claimed += other.already_claimed;
        self.failed += other.failed;
        self.remaining += other.remaining;
        self.remaining_is_lower_bound |= other.remaining_is_lower_bound;
        self.shards_given_up += other.shards_given_up;
        self.count_overdue(other.oldest_overdue_seconds);
    }
}

impl RedriveOutcome {
    pub(crate) fn add(&mut self, other: &Self) {
        self.redriven += other.redriven;
        self.waiting += other.waiting;
        self.stuck += other.stuck;
        self.failed += other.failed;
        self.shards_unfinished += other.shards_unfinished;
    }
}
