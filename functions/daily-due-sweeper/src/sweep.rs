//! The sweep: what has fallen due and is scheduled becomes pending.
//!
//! Becoming pending *is* the outbox row; the stream relay sends it. All shards go at once, each
//! at its own pace and with its own patience, so that one that is throttled stops no other.

use std::collections::VecDeque;

use futures::StreamExt as _;
use futures::future::join_all;
use payments_boot::Deadline;
use payments_model::transition::decide;
use payments_model::{Actor, Decision, Event, Outage as _, OutageKind, Shard, State, Status, Transition, UtcSecond};
use payments_store::{DueRange, DueRow, DueUntil, Moved, StoreError};
use serde::Serialize;

use crate::{Sweeper, pace};

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
        let mut total = SweepReport::default();
        for sweep in sweeps {
            total.add(&sweep?);
        }
        Ok(total)
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
    async fn claim(&self, row: &DueRow, now: UtcSecond) -> Result<Moved, StoreError> {
        let Decision::Move(to) = decide(&State::Scheduled, &Event::Sweep) else { return Ok(Moved::Elsewhere(None)) };
        let by = Actor::named(SWEEPER);
        let step = Transition { from: Status::Scheduled, from_version: row.version, to, at: now, by };
        self.store.transition(&row.head_key(), row.due.due_date, &step).await
    }
}

impl ShardSweep<'_> {
    async fn run(mut self) -> Result<SweepReport, StoreError> {
        let started = self.sweeper.clock.instant();
        while !self.deadline.has_come() {
            if self.in_hand.is_empty() && self.read_to_end {
                return Ok(self.report);
            }
            let trouble = if self.in_hand.is_empty() { self.read().await } else { self.claim_some().await };
            match trouble.map_err(|error| (error.kind(), error)) {
                Ok(()) => self.throttles = 0,
                Err((OutageKind::Broken, error)) => return Err(error),
                Err((_, error)) => {
                    self.throttles += 1;
                    let Some(wait) = pace::backoff(self.throttles) else {
                        tracing::warn!(shard = self.range.shard.get(), %error, "given up for now");
                        self.report.shards_given_up += 1;
                        break;
                    };
                    self.deadline.sleep(wait).await;
                }
            }
            let elapsed = (self.sweeper.clock.instant() - started).to_std().unwrap_or_default();
            let claims = u32::try_from(self.report.claimed + self.report.already_claimed).unwrap_or(u32::MAX);
            self.deadline.sleep(pace::wait(claims, elapsed, self.sweeper.config.claims_per_second)).await;
        }
        self.count_remaining().await;
        Ok(self.report)
    }

    async fn read(&mut self) -> Result<(), StoreError> {
        let page = self.sweeper.store.due_page(&self.range, PAGE).await?;
        if let Some(oldest) = page.rows.first() {
            let overdue = (self.now.as_chrono() - oldest.due.head.due_at.as_chrono()).num_seconds();
            let overdue = u64::try_from(overdue).unwrap_or(0);
            self.report.oldest_overdue_seconds = self.report.oldest_overdue_seconds.max(overdue);
        }
        self.in_hand.extend(page.rows);
        self.read_to_end = page.next.is_none();
        self.range.after = page.next;
        Ok(())
    }

    /// Claims the next few payments; those that were throttled stay in hand.
    async fn claim_some(&mut self) -> Result<(), StoreError> {
        let some: Vec<DueRow> = self.in_hand.drain(..self.in_hand.len().min(CLAIMS_AT_ONCE)).collect();
        let claims = join_all(some.iter().map(|row| self.sweeper.claim(row, self.now))).await;
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
        match self.sweeper.store.due_count(&self.range).await {
            Ok((count, more)) => {
                self.report.remaining += count;
                self.report.remaining_is_lower_bound |= more;
            }
            Err(_) => self.report.remaining_is_lower_bound = true,
        }
    }
}
