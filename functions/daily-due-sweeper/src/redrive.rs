//! The redrive: sends again the requests of payments that have been pending for too long.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::StreamExt as _;
use payments_boot::Deadline;
use payments_model::redrive::{NextStep, Requests, redrivable_until};
use payments_model::{Head, HeadKey, Shard, Status, Switch, UtcSecond, causes};
use payments_store::{DueRange, DueUntil, StoreError};
use payments_work::{Halt, Round, Work, at_once, drive};

use crate::function::{Permitted, REDRIVE_EVERY, Sweeper};
use crate::outcome::RedriveOutcome;
use crate::pace::writes_at_once;
use crate::sweep::SHARDS_AT_ONCE;

/// Entries of the index per page: as many as the heads of one batch read.
const PAGE: u16 = 100;

/// Heads that are read per second on one shard, each for a read unit. 32 shards use 6,400 units a second, about half of the
/// 12,000 that a new table accepts. So a run can read 1.7 million payments.
const HEADS_PER_SECOND: u32 = 200;

/// A payment whose wait is over.
struct Redrivable {
    key: HeadKey,
    /// The number of the payment's last dispatch attempt.
    attempt: u32,
    next: u32,
    /// The time since which the payment has been pending.
    since: UtcSecond,
}

/// The redrive of one shard.
struct ShardRedrive<'s> {
    sweeper: &'s Sweeper,
    deadline: &'s Deadline,
    now: UtcSecond,
    range: DueRange,
    /// Payments whose wait is over.
    in_hand: VecDeque<Redrivable>,
    read_to_end: bool,
    /// The switch at the last round.
    switch: Arc<Switch>,
    /// Whether the switch was on: the rest of the run reads and counts, and redrives nothing.
    is_stopped: bool,
    outcome: RedriveOutcome,
}

impl RedriveOutcome {
    fn count_failed(&mut self, error: &StoreError) {
        tracing::error!(%error, "a pending payment cannot be read and is not redriven");
        self.failed += 1;
    }
}

impl Sweeper {
    /// Redrives the pending payments of all shards.
    pub(crate) async fn redrive(&self, deadline: &Deadline) -> (RedriveOutcome, Option<StoreError>) {
        let now = self.clock.now();
        let shards = futures::stream::iter(self.config.read_shards.in_turn(now, REDRIVE_EVERY, SHARDS_AT_ONCE));
        let redrives: Vec<_> = shards
            .map(|shard| self.redrive_shard(shard, now, deadline))
            .buffer_unordered(SHARDS_AT_ONCE.into())
            .collect()
            .await;
        let (mut total, mut broken) = (RedriveOutcome::default(), None);
        for redrive in redrives {
            match redrive {
                Ok(outcome) => total.add(&outcome),
                Err(error) => {
                    total.shards_unfinished += 1;
                    broken = Some(error);
                }
            }
        }
        total.switch = self.switch_seen().await;
        // The metrics are emitted even if a shard failed.
        self.metrics.emit(self.clock.instant(), &total);
        (total, broken)
    }

    async fn redrive_shard(
        &self,
        shard: Shard,
        now: UtcSecond,
        deadline: &Deadline,
    ) -> Result<RedriveOutcome, StoreError> {
        let latest = redrivable_until(now);
        let until = DueUntil::Instant(self.config.zone.date_of(latest), latest);
        let range = DueRange { shard, status: Status::Pending, until, after: None };
        let (in_hand, outcome) = (VecDeque::new(), RedriveOutcome::default());
        let (read_to_end, is_stopped) = (false, false);
        let switch = Arc::default();
        let redrive =
            ShardRedrive { sweeper: self, deadline, now, range, in_hand, read_to_end, switch, is_stopped, outcome };
        redrive.run().await
    }

    /// Returns the next redrive, if the payment's wait is over.
    fn redrivable(
        &self,
        head: &Head,
        (now, switch): (UtcSecond, &Switch),
        outcome: &mut RedriveOutcome,
    ) -> Option<Redrivable> {
        let requests = Requests::from_head(head)?;
        let attempt = requests.attempt;
        match requests.next_step_after(now, self.config.max_attempts, switch) {
            NextStep::Wait => {
                outcome.waiting += 1;
                outcome.count_pending(attempt, 1, &head.updated_at().to_string());
            }
            NextStep::Stuck => {
                let (payment_id, due_date) = (head.payment_id, head.due_date);
                tracing::error!(%payment_id, %due_date, attempt, "a payment is still pending after its last request");
                outcome.count_stuck(head);
                outcome.count_pending(attempt, 1, &head.updated_at().to_string());
            }
            NextStep::Redrive(next) => {
                return Some(Redrivable { key: head.key(), attempt, next, since: head.updated_at() });
            }
        }
        None
    }
}

impl Work for ShardRedrive<'_> {
    type Error = StoreError;

    fn is_done(&self) -> bool {
        self.in_hand.is_empty() && self.read_to_end
    }

    /// A redrive does not ask for holds: these payments were claimed before, or are of another date.
    async fn round(&mut self) -> Round<StoreError> {
        if !self.is_stopped {
            match self.sweeper.permitted().await {
                Ok(Permitted::Work(switch)) => self.switch = switch,
                Ok(Permitted::Nothing) => self.is_stopped = true,
                Err(error) => return Round { done: 0, per_second: 0, failure: Some(error) },
            }
        }
        if self.is_stopped {
            self.keep();
            if self.read_to_end {
                return Round { done: 0, per_second: 0, failure: None };
            }
        }
        let (per_second, (done, failure)) = if self.in_hand.is_empty() {
            (HEADS_PER_SECOND, self.read().await)
        } else {
            (self.sweeper.config.claims_per_second, self.redrive_some().await)
        };
        Round { done, per_second, failure }
    }
}

impl ShardRedrive<'_> {
    /// Redrives until nothing is left, the deadline comes, or retries are exhausted. Keeps the pace of the sweep.
    async fn run(mut self) -> Result<RedriveOutcome, StoreError> {
        let Self { sweeper, deadline, .. } = self;
        match drive(&mut self, &sweeper.clock, deadline).await {
            Ok(()) => {}
            Err(Halt::Broken(error)) => return Err(error),
            Err(Halt::OutOfTime) => self.outcome.shards_unfinished = 1,
            Err(Halt::GivenUp(error)) => {
                let (shard, causes) = (self.range.shard.get(), causes(&error));
                tracing::warn!(shard, ?causes, "this run stops redriving the shard; the next run continues");
                self.outcome.shards_unfinished = 1;
            }
        }
        Ok(self.outcome)
    }

    /// Counts the payments in hand as waiting: nothing is redriven.
    fn keep(&mut self) {
        for kept in self.in_hand.drain(..) {
            self.outcome.waiting += 1;
            self.outcome.count_pending(kept.attempt, 1, &kept.since.to_string());
        }
    }

    /// Reads the next page, and queues the payments to redrive. Returns how many heads were read, and an error.
    async fn read(&mut self) -> (u32, Option<StoreError>) {
        let store = &self.sweeper.store;
        let page = match store.due_page(&self.range, PAGE).await {
            Ok(page) => page,
            Err(error) => return (0, Some(error)),
        };
        let (rows, unreadable): (Vec<_>, Vec<_>) = page.rows.into_iter().partition(Result::is_ok);
        let keys: Vec<HeadKey> = rows.into_iter().flatten().map(|row| row.head).collect();
        let heads = match store.hot_heads(&keys).await {
            Ok(heads) => heads,
            Err(error) => return (0, Some(error)),
        };
        // Only now is the page read, so a repeated read counts nothing twice.
        unreadable.into_iter().filter_map(Result::err).for_each(|error| self.outcome.count_failed(&error));
        let read = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        for (_, head) in heads {
            match head {
                Ok(head) => {
                    let at = (self.now, &*self.switch);
                    self.in_hand.extend(self.sweeper.redrivable(&head, at, &mut self.outcome));
                }
                Err(error) => self.outcome.count_failed(&error),
            }
        }
        self.read_to_end = page.next.is_none();
        self.range.after = page.next;
        (read, None)
    }

    /// Redrives the next few payments. Those that were throttled or not answered stay queued.
    /// Returns how many were answered, and an error.
    async fn redrive_some(&mut self) -> (u32, Option<StoreError>) {
        let (store, most) = (&self.sweeper.store, writes_at_once(self.sweeper.config.claims_per_second));
        // The time of the run, so that a payment can be sent again by the run an hour later.
        let now = self.now;
        let redrive = async |it: &Redrivable| store.redrive(&it.key, it.attempt, it.next, now).await;
        let redriven = at_once(&mut self.in_hand, most, redrive).await;
        let (mut done, mut failure) = (0, None);
        for (payment, redriven) in redriven {
            match redriven {
                Ok(was_pending) => {
                    done += 1;
                    self.outcome.redriven += u64::from(was_pending);
                    if was_pending {
                        self.outcome.count_pending(payment.next, 1, &payment.since.to_string());
                    }
                }
                Err(error) => {
                    self.in_hand.push_back(payment);
                    failure = Some(StoreError::worse(failure, error));
                }
            }
        }
        (done, failure)
    }
}
