//! The outcomes of a sweep and of a redrive, which the function returns and emits as metrics.

use std::collections::BTreeMap;

use metrique_writer::Entry;
use payments_model::Head;
use serde::{Serialize, Serializer};

use crate::switch_seen::{SwitchSeen, is_zero};

/// The most stuck payments that an outcome names: 20 of at most 240 bytes of JSON leave room in a last run.
const MAX_STUCK: usize = 20;

/// The largest number of a request that is told apart.
const MAX_NUMBER: u32 = 16;

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
    /// The longest time for which a payment that this sweep leaves could have been claimed, in seconds, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[entry(ignore)]
    pub oldest_left_seconds: Option<u64>,
    /// The due dates that their limit holds.
    #[serde(skip_serializing_if = "is_zero")]
    pub days_held: u64,
    /// 1 if today's feed is missing, and 0 if not. `None` if it is unknown or nobody expects a feed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feed_missing: Option<u64>,
    /// The holds of which the alarm is told once more.
    #[serde(skip_serializing_if = "is_zero")]
    pub still_held: u64,
    /// The switch, as the sweep saw it last.
    #[serde(flatten)]
    #[entry(flatten)]
    pub switch: SwitchSeen,
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
    /// Pending payments by the number of their last request, after this run.
    #[serde(serialize_with = "requests")]
    #[entry(ignore)]
    pub requests: BTreeMap<u32, PendingPayments>,
    /// Payments of `stuck`: those that have been pending for longest, at most 20.
    #[entry(ignore)]
    pub stuck_payments: Vec<StuckPayment>,
    /// The switch, as the redrive saw it last.
    #[serde(flatten)]
    #[entry(flatten)]
    pub switch: SwitchSeen,
}

/// Pending payments whose last request has the same number.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct PendingPayments {
    /// The number of payments.
    pub payments: u64,
    /// The time since which the first of them has been pending.
    pub oldest: String,
}

/// Writes pending payments as a list, in the order of the requests' numbers.
fn requests<S: Serializer>(requests: &BTreeMap<u32, PendingPayments>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Request<'r> {
        attempt: u32,
        payments: u64,
        oldest: &'r str,
    }
    serializer.collect_seq(requests.iter().map(|(attempt, PendingPayments { payments, oldest })| Request {
        attempt: *attempt,
        payments: *payments,
        oldest,
    }))
}

/// A payment that an operator has to act on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StuckPayment {
    /// The time since which it has been pending. The first field, because it orders the payments.
    pub pending_since: String,
    /// Its id.
    pub payment_id: String,
    /// Its account.
    pub account_id: String,
    /// Its amount, in minor units.
    pub amount_minor: i64,
    /// Its currency.
    pub currency: String,
    /// Its due date.
    pub due_date: String,
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
        self.oldest_left_seconds = self.oldest_left_seconds.max(other.oldest_left_seconds);
    }
}

impl RedriveOutcome {
    pub(crate) fn add(&mut self, other: &Self) {
        self.redriven += other.redriven;
        self.waiting += other.waiting;
        self.stuck += other.stuck;
        self.failed += other.failed;
        self.shards_unfinished += other.shards_unfinished;
        for (number, pending) in &other.requests {
            self.count_pending(*number, pending.payments, &pending.oldest);
        }
        self.stuck_payments.extend(other.stuck_payments.iter().cloned());
        self.stuck_payments.sort();
        self.stuck_payments.truncate(MAX_STUCK);
    }

    /// Counts payments whose last request has this number, pending since this time or later. Requests beyond the
    /// sixteenth, which comes after seven years, count as the sixteenth.
    pub(crate) fn count_pending(&mut self, number: u32, count: u64, since: &str) {
        let pending = self.requests.entry(number.min(MAX_NUMBER)).or_default();
        if pending.payments == 0 || since < pending.oldest.as_str() {
            since.clone_into(&mut pending.oldest);
        }
        pending.payments += count;
    }

    /// Counts a payment without dispatch attempts left.
    pub(crate) fn count_stuck(&mut self, head: &Head) {
        self.stuck += 1;
        self.stuck_payments.push(StuckPayment {
            pending_since: head.updated_at().to_string(),
            payment_id: head.payment_id.to_string(),
            account_id: head.account.to_string(),
            amount_minor: head.money.amount.get(),
            currency: head.money.currency.to_string(),
            due_date: head.due_date.to_string(),
        });
        if self.stuck_payments.len() > 2 * MAX_STUCK {
            self.stuck_payments.sort();
            self.stuck_payments.truncate(MAX_STUCK);
        }
    }
}

#[cfg(test)]
mod tests {
    use payments_machine::given::details;
    use payments_model::{MAX_AMOUNT_MINOR, Money};
    use payments_store::MAX_OUTCOME_BYTES;

    use super::*;

    /// A payment of an account with the longest id.
    fn head(number: u32) -> Head {
        let created_at = format!("2026-11-{:02}T08:00:00Z", 28 - number % 28).parse().unwrap();
        let head = Head::scheduled(&details(&number.to_string(), "2026-11-30", created_at).unwrap());
        let money = Money { amount: MAX_AMOUNT_MINOR.try_into().unwrap(), ..head.money };
        Head { account: "a".repeat(48).parse().unwrap(), money, ..head }
    }

    #[test]
    fn a_redrive_names_the_twenty_payments_that_are_pending_for_longest() {
        let mut total = RedriveOutcome::default();
        for shard in 0..3 {
            let mut outcome = RedriveOutcome::default();
            for number in (shard..60).step_by(3) {
                outcome.count_stuck(&head(number));
                outcome.count_pending(number, 1, &head(number).updated_at().to_string());
            }
            total.add(&outcome);
        }
        let since: Vec<&str> = total.stuck_payments.iter().map(|payment| &payment.pending_since[..10]).collect();
        assert_eq!((total.stuck, since.len()), (60, 20));
        assert_eq!((since[0], since[1], since[2]), ("2026-11-01", "2026-11-01", "2026-11-02"));
        assert!(since.is_sorted());
        assert_eq!(total.requests.values().map(|pending| pending.payments).sum::<u64>(), 60);
        let (third, last) = (&total.requests[&3], &total.requests[&16]);
        assert_eq!((third.oldest.as_str(), last.payments), ("2026-11-25T08:00:00Z", 44));
        let bytes = serde_json::to_string(&total).unwrap().len();
        assert!(bytes <= MAX_OUTCOME_BYTES, "{bytes} bytes");
    }
}
