//! A run: recounts dates, keeps evidence of drift, and repairs counters.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use payments_boot::Deadline;
use payments_model::{BusinessDate, Outage as _, OutageKind, UtcSecond, causes};
use payments_store::{Evidence, Missed, Repaired, StoreError, StoredEvidence};

use crate::function::Recount;
use crate::look::{Halt, Look, Reader};
use crate::outcome::{RecountOutcome, repairable_from};
use crate::repair::Repair;
use crate::seen::Seen;

/// The wait before a second look at a date that differs. It is longer than a change waits for
/// `stream-aggregator`, which is 5 s with little traffic.
const SECOND_LOOK_AFTER: Duration = Duration::from_secs(10);

/// The dates that share one wait for their second look. If all dates of a run have drifted, ten waits of
/// 10 s take two of the fifteen minutes of an invocation.
const DATES_TOGETHER: usize = 10;

/// The days that a calendar covers at least beyond the horizon: half a year, to deploy a newer one.
const COVERAGE_DAYS: i64 = 180;

/// A run.
struct Run<'r> {
    reader: Reader<'r>,
    repair: Option<Repair>,
    evidence: BTreeMap<BusinessDate, StoredEvidence>,
    judged: BTreeSet<BusinessDate>,
    outcome: RecountOutcome,
}

impl Recount {
    /// Recounts dates, and repairs those that a repair covers. The outcome names the ticket.
    pub(crate) async fn run(
        &self,
        dates: &[BusinessDate],
        deadline: Deadline,
        repair: Option<Repair>,
    ) -> (RecountOutcome, Option<StoreError>) {
        let mut run = Run::new(self, deadline, repair);
        if let Some(Repair::Ticket(ticket)) = &run.repair {
            run.outcome.ticket = Some(ticket.clone());
        }
        run.outcome.calendar_days_short = self.calendar_days_short();
        // Boxed because the future is as large as all the calls it may wait for.
        let result = Box::pin(run.all(dates)).await;
        // Also emitted when the run failed.
        self.metrics.emit(self.clock.instant(), &run.outcome);
        (run.outcome, result.err())
    }

    /// The number of days by which the shortest calendar falls short of its target, if the bank has calendars.
    fn calendar_days_short(&self) -> Option<u64> {
        let covered = self.config.calendars.days_covered(self.config.zone.date_of(self.clock.now()))?;
        let wanted = i64::from(self.config.horizon_days) + COVERAGE_DAYS;
        Some(u64::try_from(wanted - covered).unwrap_or(0))
    }
}

impl<'r> Run<'r> {
    fn new(recount: &'r Recount, deadline: Deadline, repair: Option<Repair>) -> Self {
        let reader = Reader { recount, deadline };
        let evidence = BTreeMap::new();
        let judged = BTreeSet::new();
        let outcome = RecountOutcome::default();
        Self { reader, repair, evidence, judged, outcome }
    }

    /// Recounts these dates, which are in order, and notes those that are left.
    async fn all(&mut self, dates: &[BusinessDate]) -> Result<(), StoreError> {
        let halt = self.through(dates).await;
        let left = || dates.iter().filter(|date| !self.judged.contains(date));
        self.outcome.next = left().next().map(ToString::to_string);
        self.outcome.dates_left = u64::try_from(left().count()).unwrap_or(u64::MAX);
        let next = self.outcome.next.as_deref();
        match halt {
            Ok(()) => {}
            Err(Halt::Broken(error)) => return Err(error),
            Err(Halt::OutOfTime) => {
                tracing::warn!(next, "the deadline came before all dates were recounted; continue at `next`");
                self.outcome.left_because = Some("deadline");
            }
            Err(Halt::GivenUp(error)) => {
                let causes = causes(&error);
                tracing::warn!(next, ?causes, "DynamoDB failed before all dates were recounted; continue at `next`");
                let throttled = error.kind() == OutageKind::Throttled;
                self.outcome.left_because = Some(if throttled { "throttled" } else { "unavailable" });
            }
        }
        Ok(())
    }

    async fn through(&mut self, dates: &[BusinessDate]) -> Result<(), Halt> {
        let (Some(first), Some(last)) = (dates.first(), dates.last()) else { return Ok(()) };
        let store = &self.reader.recount.store;
        self.evidence = self.reader.retried(async || store.evidence(*first, *last).await).await?;
        for together in dates.chunks(DATES_TOGETHER) {
            let mut suspects = Vec::new();
            for date in together {
                suspects.extend(self.first_look(*date).await?);
            }
            if !suspects.is_empty() {
                self.reader.deadline.sleep(SECOND_LOOK_AFTER).await;
            }
            for (date, first) in suspects {
                self.second_look(date, &first).await?;
            }
        }
        Ok(())
    }

    /// Looks at a date. Returns it if its counters and payments differ, for a second look.
    async fn first_look(&mut self, date: BusinessDate) -> Result<Option<(BusinessDate, Seen)>, Halt> {
        let look = self.reader.look(date).await?;
        let differs = self.unless_it_differs(date, look).await?;
        Ok(differs.map(|seen| (date, seen)))
    }

    /// Looks at a date again. If nothing has changed, no change is on its way to the counters: they have drifted.
    async fn second_look(&mut self, date: BusinessDate, first: &Seen) -> Result<(), Halt> {
        let now = self.reader.recount.clock.now();
        let look = self.reader.look(date).await?;
        match self.unless_it_differs(date, look).await? {
            None => {}
            Some(seen) if seen == *first => self.drifted(date, &seen, now).await?,
            Some(seen) => self.moving(date, seen.counters.counts.unparsed),
        }
        Ok(())
    }

    /// Adds the result of a look to the outcome, except for a difference, which it returns.
    async fn unless_it_differs(&mut self, date: BusinessDate, look: Look) -> Result<Option<Seen>, Halt> {
        match look {
            Look::Still(seen) if seen.is_exact() => self.exact(date).await?,
            Look::Still(seen) => return Ok(Some(seen)),
            Look::Moving(counters) => self.moving(date, counters.counts.unparsed),
            Look::Unreadable(entries) => {
                self.outcome.unreadable.push(date.to_string());
                self.outcome.unreadable_entries += entries;
                self.judged.insert(date);
            }
        }
        Ok(None)
    }

    /// Counts an exact date, and drops evidence of earlier drift.
    async fn exact(&mut self, date: BusinessDate) -> Result<(), Halt> {
        if self.evidence.contains_key(&date) {
            let store = &self.reader.recount.store;
            self.reader.retried(async || store.drop_evidence(date).await).await?;
        }
        self.outcome.exact += 1;
        self.judged.insert(date);
        Ok(())
    }

    fn moving(&mut self, date: BusinessDate, unparsed: i64) {
        self.outcome.moving.push(date.to_string());
        self.outcome.unparsed_changes += unparsed;
        self.judged.insert(date);
    }

    /// Repairs a date, read at or after `now`, if a repair covers it and the same drift was found long
    /// enough ago. Otherwise keeps the finding as evidence; an unchanged finding keeps its age.
    async fn drifted(&mut self, date: BusinessDate, seen: &Seen, now: UtcSecond) -> Result<(), Halt> {
        let store = &self.reader.recount.store;
        let earlier = self.evidence.get(&date);
        let known = earlier.and_then(|earlier| earlier.evidence.clone());
        let known = known.filter(|known| known.recounted == seen.recounted && known.moves == seen.counters.moves);
        let mut repaired = false;
        let evidence = match known {
            Some(known)
                if self.repair.as_ref().is_some_and(|repair| repair.covers(date, known.found_at))
                    && now >= repairable_from(&known)
                    && self.is_noted(known.found_at).await? =>
            {
                let repair = async || store.repair_counters(date, &seen.counters, &known).await;
                if self.reader.retried(repair).await? == Repaired::Moved {
                    self.moving(date, seen.counters.counts.unparsed);
                    return Ok(());
                }
                repaired = true;
                known
            }
            // The finding is not stored again: a nightly recount would keep it from ever being old enough to repair.
            Some(known) => known,
            None => {
                let (recounted, moves) = (seen.recounted.clone(), seen.counters.moves);
                let evidence = Evidence { recounted, moves, found_at: self.reader.recount.clock.now() };
                self.reader.retried(async || store.keep_evidence(date, &evidence, earlier).await).await?;
                evidence
            }
        };
        self.outcome.add_drift(date.to_string(), seen, &evidence, repaired);
        self.judged.insert(date);
        Ok(())
    }

    /// Notes in the head of the log that the log lacks events: those of the changes that the
    /// counters lack, because one transaction writes both. Their drift was found at `found_at`. If
    /// the log's table cannot be written, the repair must wait.
    async fn is_noted(&self, found_at: UtcSecond) -> Result<bool, Halt> {
        let missed = Missed { since: None, until: found_at };
        match self.reader.retried(async || self.reader.recount.store.note_missed(missed).await).await {
            Ok(()) => Ok(true),
            Err(Halt::Broken(error)) => {
                tracing::error!(causes = ?causes(&error), "a date is not repaired: the head of the event log cannot be written");
                Ok(false)
            }
            Err(halt) => Err(halt),
        }
    }
}
