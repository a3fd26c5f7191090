//! A run through dates: what each look means, what is kept of it, and when counters are repaired.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::TimeDelta;
use payments_boot::Deadline;
use payments_model::{BusinessDate, Outage as _, OutageKind, UtcSecond, causes};
use payments_store::{Evidence, Repaired, StoreError};

use crate::look::{Halt, Look, Reader, Seen};
use crate::report::RecountReport;
use crate::{Action, Recount};

/// How long after a first look that found a difference a second one is had: longer than a change
/// waits for `stream-aggregator`, which is 5 s where little is going on.
const SECOND_LOOK_AFTER: Duration = Duration::from_secs(10);

/// How many dates wait for their second look together. Where every date of a run has drifted, ten
/// waits of 10 s are two minutes of the fifteen that an invocation can have.
const DATES_TOGETHER: usize = 10;

/// How old evidence has to be for a repair: the stream keeps its records for 24 hours, so what has
/// not been counted by then never will be, and what is still missing is drift and not delay.
const REPAIRABLE_AFTER: TimeDelta = TimeDelta::hours(25);

/// A run under way.
pub(crate) struct Run<'r> {
    reader: Reader<'r>,
    action: Action,
    evidence: BTreeMap<BusinessDate, Option<Evidence>>,
    judged: BTreeSet<BusinessDate>,
    pub(crate) report: RecountReport,
}

/// When drift that is known by `evidence` can be repaired.
pub(crate) fn repairable_from(evidence: &Evidence) -> UtcSecond {
    evidence.found_at.saturating_add(REPAIRABLE_AFTER)
}

impl<'r> Run<'r> {
    pub(crate) fn of(recount: &'r Recount, deadline: Deadline, action: Action) -> Self {
        let reader = Reader { recount, deadline };
        let (evidence, judged, report) = (BTreeMap::new(), BTreeSet::new(), RecountReport::default());
        Self { reader, action, evidence, judged, report }
    }

    /// Goes through dates, which are in order, and says which are left.
    pub(crate) async fn all(&mut self, dates: &[BusinessDate]) -> Result<(), StoreError> {
        let halt = self.through(dates).await;
        let left = || dates.iter().filter(|date| !self.judged.contains(date));
        self.report.next = left().next().map(ToString::to_string);
        self.report.dates_left = u64::try_from(left().count()).unwrap_or(u64::MAX);
        let next = self.report.next.as_deref();
        match halt {
            Ok(()) => {}
            Err(Halt::Broken(error)) => return Err(error),
            Err(Halt::OutOfTime) => {
                tracing::warn!(next, "dates are left because the deadline came");
                self.report.left_because = Some("deadline");
            }
            Err(Halt::GivenUp(error)) => {
                tracing::warn!(next, causes = ?causes(&error), "dates are left");
                let throttled = error.kind() == OutageKind::Throttled;
                self.report.left_because = Some(if throttled { "throttled" } else { "unavailable" });
            }
        }
        Ok(())
    }

    async fn through(&mut self, dates: &[BusinessDate]) -> Result<(), Halt> {
        let (Some(first), Some(last)) = (dates.first(), dates.last()) else { return Ok(()) };
        let store = &self.reader.recount.store;
        self.evidence = self.reader.patiently(async || store.evidence(*first, *last).await).await?;
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

    /// Looks at a date; where its counters and payments differ, it has to be looked at again.
    async fn first_look(&mut self, date: BusinessDate) -> Result<Option<(BusinessDate, Seen)>, Halt> {
        let look = self.reader.look(date).await?;
        let differs = self.unless_it_differs(date, look).await?;
        Ok(differs.map(|seen| (date, seen)))
    }

    /// Looks at a date again. If all is as it was, no change is on its way to the counters: they
    /// have drifted.
    async fn second_look(&mut self, date: BusinessDate, first: &Seen) -> Result<(), Halt> {
        let now = self.reader.recount.clock.now();
        let look = self.reader.look(date).await?;
        match self.unless_it_differs(date, look).await? {
            None => {}
            Some(seen) if seen.is_like(first) => self.drifted(date, &seen, now).await?,
            Some(seen) => self.moving(date, seen.counters.counts.unparsed),
        }
        Ok(())
    }

    /// Notes what a look says of a date, except for a difference.
    async fn unless_it_differs(&mut self, date: BusinessDate, look: Look) -> Result<Option<Seen>, Halt> {
        match look {
            Look::Still(seen) if seen.is_exact() => self.exact(date).await?,
            Look::Still(seen) => return Ok(Some(seen)),
            Look::Moving(counters) => self.moving(date, counters.counts.unparsed),
            Look::Unreadable(entries) => {
                self.report.unreadable.push(date.to_string());
                self.report.unreadable_entries += entries;
                self.judged.insert(date);
            }
        }
        Ok(None)
    }

    /// Nothing is left of what was found earlier.
    async fn exact(&mut self, date: BusinessDate) -> Result<(), Halt> {
        if self.evidence.contains_key(&date) {
            let store = &self.reader.recount.store;
            self.reader.patiently(async || store.drop_evidence(date).await).await?;
        }
        self.report.exact += 1;
        self.judged.insert(date);
        Ok(())
    }

    fn moving(&mut self, date: BusinessDate, unparsed: i64) {
        self.report.moving.push(date.to_string());
        self.report.unparsed_changes += unparsed;
        self.judged.insert(date);
    }

    /// Repairs a date, looked at from `now` on, if that was asked for and the same was found long
    /// enough ago; otherwise keeps what was found. The same finding keeps its age.
    async fn drifted(&mut self, date: BusinessDate, seen: &Seen, now: UtcSecond) -> Result<(), Halt> {
        let store = &self.reader.recount.store;
        let known = self.evidence.get(&date).cloned().flatten();
        let known = known.filter(|known| known.recounted == seen.recounted && known.moves == seen.counters.moves);
        let mut repaired = false;
        let evidence = match known {
            Some(known) if self.action == Action::Repair && now >= repairable_from(&known) => {
                let repair = async || store.repair_counters(date, &seen.counters, &known).await;
                if self.reader.patiently(repair).await? == Repaired::Moved {
                    self.moving(date, seen.counters.counts.unparsed);
                    return Ok(());
                }
                repaired = true;
                known
            }
            Some(known) => known,
            None => {
                let (recounted, moves) = (seen.recounted.clone(), seen.counters.moves);
                let evidence = Evidence { recounted, moves, found_at: self.reader.recount.clock.now() };
                self.reader.patiently(async || store.keep_evidence(date, &evidence).await).await?;
                evidence
            }
        };
        self.report.note_drift(date.to_string(), seen, &evidence, repaired);
        self.judged.insert(date);
        Ok(())
    }
}
