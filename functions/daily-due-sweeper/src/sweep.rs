//! The sweep: what has fallen due and is scheduled becomes pending.
//!
//! Becoming pending *is* the outbox row; the stream relay sends it. All shards go at once, each
//! at its own pace and with its own patience, so that one that is throttled stops no other.

use std::collections::VecDeque;

use futures::StreamExt as _;
use futures::future::join_all;
use payments_boot::{Deadline, pace};
use payments_model::{Actor, Event, Outage as _, OutageKind, Shard, State, Status, Transition, UtcSecond, causes};
use payments_store::{DueRange, DueRow, DueUntil, Moved, StoreError};
use serde::Serialize;

use crate::Sweeper;

/// How many index entries are read at once: 300 KB of them.
const PAGE: u16 = 1_000;

/// How many claims of one shard are under way at once.
const CLAIMS_AT_ONCE: usize = 16;

/// How many shards are worked on at once.
pub(crate) const SHARDS_AT_ONCE: usize = 32;

/// Who makes a payment pending, as trails name it.
const SWEEPER: &str = "daily-due-sweeper";

/// What a sweep did.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SweepReport {
    /// Payments that became pending.
    pub claimed: u64,
    /// Payments that the index still showed as scheduled, but that had moved on.
    pub already_claimed: u64,
    /// Payments that cannot be read or moved; the log says why.
    pub failed: u64,
    /// Payments left for the next tick.
    pub remaining: u64,
    /// Whether there may be more left than were counted.
    pub remaining_is_lower_bound: bool,
    /// Shards given up for now because DynamoDB throttled them or did not answer.
    pub shards_given_up: u64,
    /// How long the oldest payment found had been due, in seconds.
    pub oldest_overdue_seconds: u64,
}

impl SweepReport {
    fn add(&mut self, other: &Self) {
        self.claimed += other.claimed;
        self.already_claimed += other.already_claimed;
        self.failed += other.failed;
        self.remaining += other.remaining;
        self.remaining_is_lower_bound |= other.remaining_is_lower_bound;
        self.shards_given_up += other.shards_given_up;
        self.oldest_overdue_seconds = self.oldest_overdue_seconds.max(other.oldest_overdue_seconds);
    }
}

/// One shard on its way through its overdue payments.
struct ShardSweep<'s> {
    sweeper: &'s Sweeper,
    deadline: &'s Deadline,
    now: UtcSecond,
    range: DueRange,
    /// Read, and not yet claimed.
    in_hand: VecDeque<DueRow>,
    read_to_end: bool,
    throttles: u32,
    report: SweepReport,
}

impl Sweeper {
    /// Sweeps all shards.
    pub(crate) async fn sweep(&self, deadline: &Deadline) -> Result<SweepReport, StoreError> {
        let now = self.clock.now();
        let shards = futures::stream::iter(self.config.read_shards.all());
        let sweeps: Vec<_> =
            shards.map(|shard| self.sweep_shard(shard, now, deadline)).buffer_unordered(SHARDS_AT_ONCE).collect().await;
        let (mut total, mut broken) = (SweepReport::default(), None);
        for sweep in sweeps {
            match sweep {
                Ok(report) => total.add(&report),
                Err(error) => broken = Some(error),
            }
        }
        // What the other shards did is counted also where one of them broke.
        self.emit_sweep(&total);
        broken.map_or(Ok(total), Err)
    }

    async fn sweep_shard(&self, shard: Shard, now: UtcSecond, deadline: &Deadline) -> Result<SweepReport, StoreError> {
        let until = DueUntil::Instant(self.config.zone.date_of(now), now);
        let range = DueRange { shard, status: Status::Scheduled, until, after: None };
        let (in_hand, report) = (VecDeque::new(), SweepReport::default());
        let sweep =
            ShardSweep { sweeper: self, deadline, now, range, in_hand, read_to_end: false, throttles: 0, report };
        sweep.run().await
    }

    /// Claims one payment: the index shows the status and version that the condition then asks for.
    async fn claim(&self, row: &DueRow) -> Result<Moved, StoreError> {
        let (at, by) = (self.clock.now(), Actor::named(SWEEPER));
        match Transition::new(&State::Scheduled, row.version, &Event::Sweep, at, by) {
            Ok(step) => self.store.transition(&row.head_key(), row.due.due_date, &step).await,
            Err(_) => Ok(Moved::Elsewhere(None)),
        }
    }
}

impl ShardSweep<'_> {
    async fn run(mut self) -> Result<SweepReport, StoreError> {
        while !self.deadline.has_come() {
            if self.in_hand.is_empty() && self.read_to_end {
                return Ok(self.report);
            }
            let (started, before) = (self.sweeper.clock.instant(), self.progress());
            let step = if self.in_hand.is_empty() { self.read().await } else { self.claim_some().await };
            let claimed = self.progress() - before;
            if step.is_ok() || claimed > 0 {
                self.throttles = 0;
            }
            match step.map_err(|error| (error.kind(), error)) {
                Ok(()) => {}
                Err((OutageKind::Broken, error)) => return Err(error),
                Err((_, error)) => {
                    self.throttles += 1;
                    let Some(wait) = pace::backoff(self.throttles) else {
                        tracing::warn!(shard = self.range.shard.get(), causes = ?causes(&error), "given up for now");
                        self.report.shards_given_up += 1;
                        break;
                    };
                    self.deadline.sleep(wait).await;
                }
            }
            // Each step keeps the pace on its own: time lost is not made up for in a burst.
            let elapsed = (self.sweeper.clock.instant() - started).to_std().unwrap_or_default();
            let claimed = u32::try_from(claimed).unwrap_or(u32::MAX);
            self.deadline.sleep(pace::wait(claimed, elapsed, self.sweeper.config.claims_per_second)).await;
        }
        self.count_remaining().await;
        Ok(self.report)
    }

    /// Payments dealt with so far.
    fn progress(&self) -> u64 {
        self.report.claimed + self.report.already_claimed
    }

    async fn read(&mut self) -> Result<(), StoreError> {
        let page = self.sweeper.store.due_page(&self.range, PAGE).await?;
        for row in page.rows {
            match row {
                Ok(row) => {
                    let overdue = (self.now.as_chrono() - row.due.head.due_at.as_chrono()).num_seconds();
                    let oldest = &mut self.report.oldest_overdue_seconds;
                    *oldest = (*oldest).max(u64::try_from(overdue).unwrap_or(0));
                    self.in_hand.push_back(row);
                }
                Err(error) => {
                    tracing::error!(%error, "a payment cannot be swept");
                    self.report.failed += 1;
                }
            }
        }
        self.read_to_end = page.next.is_none();
        self.range.after = page.next;
        Ok(())
    }

    /// Claims the next few payments; those that were throttled stay in hand.
    async fn claim_some(&mut self) -> Result<(), StoreError> {
        let some: Vec<DueRow> = self.in_hand.drain(..self.in_hand.len().min(CLAIMS_AT_ONCE)).collect();
        let claims = join_all(some.iter().map(|row| self.sweeper.claim(row))).await;
        let mut trouble = Ok(());
        for (row, claim) in some.into_iter().zip(claims) {
            match claim {
                Ok(Moved::Done(_)) => self.report.claimed += 1,
                Ok(Moved::Elsewhere(_)) => self.report.already_claimed += 1,
                Err(error @ StoreError::Unreadable { .. }) => {
                    tracing::error!(%error, "a payment cannot be swept");
                    self.report.failed += 1;
                }
                Err(error) => {
                    self.in_hand.push_back(row);
                    trouble = Err(error);
                }
            }
        }
        trouble
    }

    /// Counts what is left behind, as far as one read reaches.
    async fn count_remaining(&mut self) {
        self.report.remaining += u64::try_from(self.in_hand.len()).unwrap_or(u64::MAX);
        if self.read_to_end {
            return;
        }
        if self.deadline.has_come() {
            // There is no time left to count.
            self.report.remaining_is_lower_bound = true;
            return;
        }
        match self.sweeper.store.due_count(&self.range).await {
            Ok((count, more)) => {
                self.report.remaining += count;
                self.report.remaining_is_lower_bound |= more;
            }
            Err(_) => self.report.remaining_is_lower_bound = true,
        }
    }
}
