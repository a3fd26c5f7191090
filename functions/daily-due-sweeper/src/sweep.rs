//! The sweep: claims payments that are due.
//!
//! The hot table's stream carries each claim to `dispatch`, which sends the payment's request. Up to 32 shards are
//! swept at once. Each shard has its own rate and retries, so a throttled shard does not stop the other shards.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use chrono::TimeDelta;
use futures::StreamExt as _;
use payments_boot::Deadline;
use payments_model::{Actor, BusinessDate, Event, Shard, State, Status, Switch, Transition, UtcSecond, causes};
use payments_store::{Damaged, DueRange, DueRow, DueSort, DueUntil, Moved, StoreError};
use payments_work::{Halt, Round, Work, at_once, drive};

use crate::function::{Permitted, SWEEP_EVERY, Sweeper};
use crate::guard::{Guard, with_held};
use crate::lateness::claimable_seconds;
use crate::outcome::SweepOutcome;
use crate::pace::writes_at_once;
use crate::reserved::Reserved;
use crate::still_held::to_tell;

/// Entries of the index per page: about 300 KB.
const PAGE: u16 = 1_000;

/// The most shards that are swept at once. With more shards than this, the next run begins with the
/// shards that this run may not reach.
pub(crate) const SHARDS_AT_ONCE: u16 = 32;

/// The longest time by which a payment's stored due time can be before its date begins by today's
/// time zone rules. The due time was computed by the rules that were in force when the payment was
/// stored, and a new rule moves the beginning of a date by an hour or two.
const EARLIER_BY_LAW: TimeDelta = TimeDelta::hours(3);

/// The sweep of one shard.
pub(crate) struct ShardSweep<'s> {
    pub(crate) sweeper: &'s Sweeper,
    pub(crate) deadline: &'s Deadline,
    /// The start of the sweep. Payments that are due later are not claimed.
    now: UtcSecond,
    pub(crate) shard: Shard,
    /// The switch at the last round. Payments of held dates are neither read nor claimed.
    pub(crate) switch: Arc<Switch>,
    today: BusinessDate,
    /// The last date whose payments may be due.
    pub(crate) last: BusinessDate,
    /// The first date that is not read to its end.
    from: BusinessDate,
    /// The key after which that date is read.
    after: Option<DueSort>,
    /// The guard, if dates have a limit, and the dates that it held at the last round.
    guard: Option<&'s Guard<'s>>,
    held: BTreeSet<BusinessDate>,
    /// The ends of the holds of dates, by the guard.
    freed: BTreeMap<BusinessDate, UtcSecond>,
    pub(crate) reserved: Reserved,
    /// Payments that were read from the index and are not claimed yet.
    pub(crate) in_hand: VecDeque<DueRow>,
    pub(crate) read_to_end: bool,
    /// Whether the switch ended the sweep.
    is_stopped: bool,
    pub(crate) outcome: SweepOutcome,
}

impl Sweeper {
    /// Sweeps all shards.
    pub(crate) async fn sweep(
        &self,
        deadline: &Deadline,
        feed_missing: Option<u64>,
    ) -> (SweepOutcome, Option<StoreError>) {
        let now = self.clock.now();
        let guard = self.config.max_day.as_ref().map(|limit| Guard::new(limit, &self.store, &self.clock));
        let shards = futures::stream::iter(self.config.read_shards.in_turn(now, SWEEP_EVERY, SHARDS_AT_ONCE));
        let sweeps = shards.map(|shard| self.sweep_shard(shard, now, deadline, guard.as_ref()));
        let sweeps: Vec<_> = sweeps.buffer_unordered(SHARDS_AT_ONCE.into()).collect().await;
        let (mut total, mut broken) = (SweepOutcome { feed_missing, ..SweepOutcome::empty() }, None);
        for sweep in sweeps {
            match sweep {
                Ok(outcome) => total.add(&outcome),
                Err(error) => {
                    total.count_overdue(None);
                    broken = Some(error);
                }
            }
        }
        total.switch = self.switch_seen().await;
        let held_since = guard.as_ref().map(Guard::held_since).unwrap_or_default();
        total.days_held = u64::try_from(guard.as_ref().map_or(0, |guard| guard.held().len())).unwrap_or(u64::MAX);
        total.still_held = to_tell(now, &held_since, &self.switched_at().await);
        // The metrics are emitted even if a shard failed.
        self.metrics.emit(self.clock.instant(), &total);
        (total, broken)
    }

    async fn sweep_shard(
        &self,
        shard: Shard,
        now: UtcSecond,
        deadline: &Deadline,
        guard: Option<&Guard<'_>>,
    ) -> Result<SweepOutcome, StoreError> {
        let today = self.config.zone.date_of(now);
        // In the last hours of a date, payments of the next date may be due already: see `EARLIER_BY_LAW`.
        let is_late = self.config.zone.end_of(today) <= now.saturating_add(EARLIER_BY_LAW);
        let sweep = ShardSweep {
            sweeper: self,
            deadline,
            now,
            shard,
            switch: Arc::default(),
            today,
            last: today.plus_days(u32::from(is_late)),
            from: BusinessDate::MIN,
            after: None,
            guard,
            held: BTreeSet::new(),
            freed: BTreeMap::new(),
            reserved: Reserved::default(),
            in_hand: VecDeque::new(),
            read_to_end: false,
            is_stopped: false,
            outcome: SweepOutcome::empty(),
        };
        sweep.run().await
    }

    /// Claims one payment, on the condition that its head still has the status, version and due time that
    /// the index shows. A claim within a limit is tried once, because what was not claimed is given back.
    async fn claim(&self, row: &DueRow) -> Result<Result<Moved, Damaged>, StoreError> {
        let (at, by) = (self.clock.now(), Actor::sweep());
        let Ok(step) = Transition::new(&State::Scheduled, row.version, &Event::Sweep, at, by) else {
            return Ok(Ok(Moved::Elsewhere(None)));
        };
        if self.config.max_day.is_some() {
            return self.store.claim_once(&row.head, row.due, &step).await;
        }
        self.store.transition(&row.head, row.due, &step).await.map(Ok)
    }
}

impl Work for ShardSweep<'_> {
    type Error = StoreError;

    fn is_done(&self) -> bool {
        self.is_stopped || (self.in_hand.is_empty() && self.reserved.is_empty() && self.read_to_end)
    }

    async fn round(&mut self) -> Round<StoreError> {
        match self.sweeper.permitted().await {
            Ok(Permitted::Work(switch)) => self.obey(switch),
            Ok(Permitted::Nothing) => {
                self.is_stopped = true;
                return Round { done: 0, per_second: 0, failure: None };
            }
            Err(error) => return Round { done: 0, per_second: 0, failure: Some(error) },
        }
        if self.is_done() {
            return Round { done: 0, per_second: 0, failure: None };
        }
        let before = self.progress();
        let step = match self.guard {
            _ if self.reserved.is_empty() && self.in_hand.is_empty() => self.read().await,
            Some(guard) if self.reserved.rows.is_empty() => self.next_reservation(guard).await,
            _ => self.claim_some().await,
        };
        let done = u32::try_from(self.progress() - before).unwrap_or(u32::MAX);
        Round { done, per_second: self.sweeper.config.claims_per_second, failure: step.err() }
    }
}

impl ShardSweep<'_> {
    async fn run(mut self) -> Result<SweepOutcome, StoreError> {
        let Self { sweeper, deadline, .. } = self;
        let ended = drive(&mut self, &sweeper.clock, deadline).await;
        if let Some(guard) = self.guard {
            self.end_reservations(guard).await;
        }
        match ended {
            Ok(()) if self.is_stopped => {
                self.outcome.remaining += u64::try_from(self.in_hand.len()).unwrap_or(u64::MAX);
                self.outcome.remaining_is_lower_bound = true;
                return Ok(self.outcome);
            }
            Ok(()) => return Ok(self.outcome),
            Err(Halt::OutOfTime) => {}
            Err(Halt::Broken(error)) => return Err(error),
            Err(Halt::GivenUp(error)) => {
                let (shard, causes) = (self.shard.get(), causes(&error));
                tracing::warn!(shard, ?causes, "this run stops sweeping the shard; the next run continues");
                self.outcome.shards_given_up += 1;
            }
        }
        self.measure_left().await;
        self.count_remaining().await;
        Ok(self.outcome)
    }

    pub(crate) fn progress(&self) -> u64 {
        self.outcome.claimed + self.outcome.already_claimed
    }

    /// Leaves payments of dates that are held since the last round.
    fn obey(&mut self, switch: Arc<Switch>) {
        let held = if let Some(guard) = self.guard {
            self.freed = guard.freed();
            guard.held()
        } else {
            BTreeSet::new()
        };
        if self.switch.version == switch.version && self.held == held {
            return;
        }
        // Reserved claims are within the limit, so only the switch takes them away.
        self.reserved.leave(|date| switch.is_held(date));
        let switch = if held.is_empty() { switch } else { Arc::new(with_held(&switch, &held)) };
        self.in_hand.retain(|row| !switch.is_held(row.due.due_date));
        (self.switch, self.held) = (switch, held);
    }

    /// The last end of a stop or a hold, before which payments of this date were not late.
    pub(crate) fn freed_at(&self, date: BusinessDate) -> Option<UtcSecond> {
        self.switch.freed_at.max(self.freed.get(&date).copied())
    }

    /// Gives back what was not claimed of the last reservation, and makes the next.
    async fn next_reservation(&mut self, guard: &Guard<'_>) -> Result<(), StoreError> {
        self.give_back(guard).await;
        self.reserve(guard).await
    }

    /// The next range to read, and its last date: dates in a row that are not held. `None` at the end.
    pub(crate) fn next_range(&self) -> Option<(DueRange, BusinessDate)> {
        let (first, end) = self.switch.free(self.from, self.last)?.into_inner();
        // The payments of today that are due later are not read, so tomorrow is a range of its own.
        let end = if first <= self.today { end.min(self.today) } else { end };
        let is_first = first == BusinessDate::MIN;
        let until =
            if is_first { DueUntil::Instant(end, self.now) } else { DueUntil::InstantFrom(first, end, self.now) };
        let after = self.after.filter(|after| after.due_date == first);
        Some((DueRange { shard: self.shard, status: Status::Scheduled, until, after }, end))
    }

    pub(crate) async fn read(&mut self) -> Result<(), StoreError> {
        let Some((range, end)) = self.next_range() else {
            self.read_to_end = true;
            return Ok(());
        };
        let page = self.sweeper.store.due_page(&range, PAGE).await?;
        for row in page.rows {
            match row {
                // The range has all payments of earlier dates, without regard to their due times. If the
                // time zone rules have changed, a payment of an earlier date may not be due yet.
                Ok(row) if row.due.due_at > self.now => {}
                Ok(row) => self.in_hand.push_back(row),
                Err(error) => {
                    tracing::error!(%error, "a scheduled payment cannot be read and is not claimed");
                    self.outcome.failed += 1;
                }
            }
        }
        self.after = page.next;
        self.from = page.next.map_or(end.plus_days(1), |next| next.due_date);
        self.read_to_end = page.next.is_none() && (end >= self.last || self.next_range().is_none());
        Ok(())
    }

    /// Claims the next few payments. Payments whose claim was throttled or not answered stay in hand.
    async fn claim_some(&mut self) -> Result<(), StoreError> {
        let (sweeper, most) = (self.sweeper, writes_at_once(self.sweeper.config.claims_per_second));
        let queue = if self.guard.is_some() { &mut self.reserved.rows } else { &mut self.in_hand };
        let claims = at_once(queue, most, async |row| sweeper.claim(row).await).await;
        let mut failure = None;
        for (row, claim) in claims {
            match claim {
                Ok(Ok(Moved::Done(head))) => {
                    self.outcome.claimed += 1;
                    let seconds = claimable_seconds(&head, self.freed_at(row.due.due_date), head.updated_at());
                    self.outcome.count_overdue(Some(seconds));
                }
                Ok(Ok(Moved::Elsewhere(head))) => {
                    self.outcome.already_claimed += 1;
                    if self.guard.is_some() {
                        self.reserved.not_claimed(row, head.as_deref());
                    }
                }
                // DynamoDB answered the claim with a head that cannot be read. The payment is claimed
                // unless the damage made the claim's condition fail.
                Ok(Err(damaged)) => self.damaged(row, &damaged),
                Err(error @ StoreError::Unreadable { .. }) => self.damaged(row, &Damaged { error, is_unmoved: false }),
                Err(error) => {
                    if self.guard.is_some() {
                        // A claim within a limit is tried once, so a throttled one was not made.
                        if !matches!(error, StoreError::Throttled { .. }) {
                            self.reserved.unanswered.insert(row.due.payment_id);
                        }
                        self.reserved.rows.push_back(row);
                    } else {
                        self.in_hand.push_back(row);
                    }
                    failure = Some(StoreError::worse(failure, error));
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    fn damaged(&mut self, row: DueRow, Damaged { error, is_unmoved }: &Damaged) {
        tracing::error!(%error, "a payment cannot be read when it is claimed; it may be SCHEDULED or PENDING");
        self.outcome.failed += 1;
        if self.guard.is_some() && *is_unmoved {
            self.reserved.not_claimed(row, None);
        }
    }
}
