//! The function: a run seals past dates until all are sealed or the deadline comes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::TimeDelta;
use lambda_runtime::{Error, LambdaEvent};
use object_store::ObjectStore;
use payments_boot::{Clock, Deadline, Metrics};
use payments_model::{BusinessDate, causes};
use payments_sealed::{Folder, FolderError, missing, path};
use payments_store::{Cleared, Job, Store};
use payments_work::ScheduledRun;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::SealError;
use crate::outcome::{Differing, SealOutcome};
use crate::payment::STATUSES;

/// The time that is kept for the end of a part: its writing takes a few seconds, and its put and its reading back a call each.
pub const RESERVED: TimeDelta = TimeDelta::seconds(60);

/// The dates that a run looks at. A payment that ends later than that stays in the tables alone.
const LOOK_BACK_DAYS: u32 = 400;

/// The days within which a part that is old enough is cleared, or its payments are corrected.
const CLEARED_WITHIN_DAYS: u32 = 14;

/// The days after which a date that could be sealed or cleared is late: three nights of the schedule.
pub(crate) const LATE_AFTER_DAYS: u32 = 3;

/// The schedule's request, `{"action":"seal"}`.
pub type Request = payments_boot::Request<Action>;

/// The function's actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Seal the finished payments of past dates.
    Seal,
}

/// The function.
#[derive(Debug, Clone)]
pub struct Seal {
    pub(crate) config: Config,
    pub(crate) store: Store,
    /// The parts.
    pub(crate) files: Arc<dyn ObjectStore>,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
}

impl Seal {
    /// Creates the function.
    pub fn new(config: Config, store: Store, files: Arc<dyn ObjectStore>, clock: Clock, metrics: Metrics) -> Self {
        Self { config, store, files, clock, metrics }
    }

    /// Seals until all dates are sealed, then clears what is old enough, until shortly before Lambda's deadline.
    ///
    /// # Errors
    /// If DynamoDB or the storage fails in a way that a retry does not change, or a part has other bytes than were written.
    /// Committed parts stay.
    pub async fn handle(&self, event: LambdaEvent<Request>) -> Result<SealOutcome, Error> {
        let Action::Seal = event.payload.action;
        let run = ScheduledRun::begin(Job::Seal, &self.clock, event.context.deadline);
        let deadline = Deadline::before(event.context.deadline, &self.clock).earlier(RESERVED);
        let mut outcome = SealOutcome::default();
        // Boxed because the future is as large as all the calls it may wait for.
        let failure = Box::pin(self.work(&deadline, &mut outcome)).await.err();
        // A failed run does not know how far it is behind. Its alarm is another one.
        match failure {
            None => self.metrics.emit(self.clock.instant(), &outcome),
            Some(_) => self.metrics.emit(self.clock.instant(), &Differing { seal_differs: outcome.seal_differs }),
        }
        run.end(&outcome, failure.as_ref().map(|it| it as _), async |run| self.store.put_last_run(run).await).await;
        failure.map_or(Ok(outcome), |error| Err(error.into()))
    }

    /// The last date that ended so many days ago.
    pub(crate) fn ended(&self, days: u32) -> BusinessDate {
        let at = self.clock.now().saturating_add(-TimeDelta::days(days.into()));
        self.config.zone.date_of(at).minus_days(1)
    }

    async fn work(&self, deadline: &Deadline, outcome: &mut SealOutcome) -> Result<(), SealError> {
        let before_first = self.ended(self.config.seal_after_days).minus_days(LOOK_BACK_DAYS);
        // A part of the earliest date may just have been written.
        let before_parts = before_first.minus_days(self.config.clear_after_days + CLEARED_WITHIN_DAYS);
        let parts = Folder(&*self.files).parts(before_parts).await?;
        let cleared = self.store.cleared(before_parts.plus_days(1)).await?;
        let sealing = self.seal(before_first, &parts, &cleared, deadline, outcome).await;
        // A damaged part does not stop the clear of others.
        let clearing = self.clear(&parts, &cleared, deadline, outcome).await;
        sealing.and(clearing)
    }

    /// Seals the dates that are not sealed, those with the most unsealed payments first: a few that wait hold up no other date.
    async fn seal(
        &self,
        before_first: BusinessDate,
        parts: &BTreeMap<BusinessDate, BTreeSet<u32>>,
        cleared: &Cleared,
        deadline: &Deadline,
        outcome: &mut SealOutcome,
    ) -> Result<(), SealError> {
        let days = self.config.seal_after_days;
        let (last, late) = (self.ended(days), self.ended(days + LATE_AFTER_DAYS));
        let counters = self.store.counters(before_first.plus_days(1), last).await?;
        let (mut left, mut damaged) = (Vec::new(), None);
        for (date, counters) in counters {
            let finished: i64 = STATUSES.map(|status| counters.counts.count(status)).iter().sum();
            let (numbers, finished) = (parts.get(&date), u64::try_from(finished).unwrap_or(0));
            match self.sealed_rows(date, numbers, cleared.begun.get(&date)).await {
                Ok((number, rows)) if rows < finished => left.push((Reverse(finished - rows), date, number, finished)),
                Ok(_) => {}
                Err(error) => pass_over(date, error, outcome, &mut damaged)?,
            }
        }
        left.sort_unstable();
        for (_, date, number, finished) in left {
            // The dates that were not looked at may only wait.
            let (mut is_behind, waiting) = (number == 0, outcome.waiting);
            if !deadline.has_come() {
                match self.seal_date(date, number, deadline, outcome).await {
                    Ok(rows) if rows >= finished => continue,
                    Ok(rows) => is_behind = rows + outcome.waiting - waiting < finished,
                    Err(error) => {
                        pass_over(date, error, outcome, &mut damaged)?;
                        continue;
                    }
                }
            }
            outcome.dates_left += 1;
            outcome.seal_behind += u64::from(is_behind && date <= late);
        }
        damaged.map_or(Ok(()), Err)
    }

    /// The number of a date's parts, which have the numbers from 1 on, and that of their payments, by the last one.
    async fn sealed_rows(
        &self,
        date: BusinessDate,
        numbers: Option<&BTreeSet<u32>>,
        cleared: Option<&BTreeSet<u32>>,
    ) -> Result<(u32, u64), SealError> {
        let last = |numbers: Option<&BTreeSet<u32>>| numbers.and_then(BTreeSet::last).copied().unwrap_or(0);
        // A part whose payments were cleared has their data: no other may take its number.
        let last_ever = last(numbers).max(last(cleared));
        if let Some(hole) = (1..=last_ever).find(|number| !numbers.is_some_and(|numbers| numbers.contains(number))) {
            return Err(missing(&path(date, hole)).into());
        }
        let Some(last) = Some(last_ever).filter(|last| *last > 0) else { return Ok((0, 0)) };
        Ok((last, Folder(&*self.files).part(&path(date, last)).await?.rows_up_to()))
    }
}

/// Leaves a date whose part cannot be used: it stops no other date. Other errors end the run.
pub(crate) fn pass_over(
    date: BusinessDate,
    error: SealError,
    outcome: &mut SealOutcome,
    first: &mut Option<SealError>,
) -> Result<(), SealError> {
    if !matches!(error, SealError::Folder(FolderError::Damaged(_) | FolderError::Differs(_))) {
        return Err(error);
    }
    tracing::error!(%date, causes = ?causes(&error), "a part cannot be used; the other dates go on");
    outcome.dates_left += 1;
    first.get_or_insert(error);
    Ok(())
}
