//! The function: a run seals past dates until all are sealed or the deadline comes.

use std::sync::Arc;

use chrono::TimeDelta;
use lambda_runtime::{Error, LambdaEvent};
use object_store::ObjectStore;
use payments_boot::{Clock, Deadline, Metrics};
use payments_model::{BusinessDate, causes};
use payments_store::{Job, Store};
use payments_work::ScheduledRun;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::SealError;
use crate::folder::{Folder, path};
use crate::outcome::SealOutcome;
use crate::payment::STATUSES;

/// The time that is kept for the end of a part: its writing takes a few seconds, and its put and its reading back a call each.
pub const RESERVED: TimeDelta = TimeDelta::seconds(60);

/// The dates that a run looks at. A payment that ends later than that stays in the tables alone.
const LOOK_BACK_DAYS: u32 = 400;

/// The days after which a date that could be sealed is late: three nights of the schedule.
const LATE_AFTER_DAYS: u32 = 3;

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

    /// Seals until all dates are sealed, or until shortly before Lambda's deadline.
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
        let failure = Box::pin(self.seal(&deadline, &mut outcome)).await.err();
        // A failed run does not know how far it is behind. Its alarm is another one.
        if failure.is_none() {
            self.metrics.emit(self.clock.instant(), &outcome);
        }
        run.end(&outcome, failure.as_ref().map(|it| it as _), async |run| self.store.put_last_run(run).await).await;
        failure.map_or(Ok(outcome), |error| Err(error.into()))
    }

    /// Seals the dates that are not sealed, oldest first.
    async fn seal(&self, deadline: &Deadline, outcome: &mut SealOutcome) -> Result<(), SealError> {
        let ended = |days: u32| {
            let at = self.clock.now().saturating_add(-TimeDelta::days(days.into()));
            self.config.zone.date_of(at).minus_days(1)
        };
        let (last, late) = (ended(self.config.seal_after_days), ended(self.config.seal_after_days + LATE_AFTER_DAYS));
        let before_first = last.minus_days(LOOK_BACK_DAYS);
        let counters = self.store.counters(before_first.plus_days(1), last).await?;
        let parts = Folder(&*self.files).last_parts(before_first).await?;
        let mut damaged = None;
        for (date, counters) in counters {
            let finished: i64 = STATUSES.map(|status| counters.counts.count(status)).iter().sum();
            let (number, finished) = (parts.get(&date).copied().unwrap_or(0), u64::try_from(finished).unwrap_or(0));
            match self.seal_counted(date, (number, finished), deadline, outcome).await {
                Ok(None) => {}
                Ok(Some(is_waiting)) => {
                    outcome.dates_left += 1;
                    outcome.seal_behind += u64::from(date <= late && !is_waiting);
                }
                // One part stops no other date.
                Err(error @ (SealError::Damaged(..) | SealError::Differs(_))) => {
                    tracing::error!(%date, causes = ?causes(&error), "a part cannot be used; the other dates go on");
                    outcome.dates_left += 1;
                    damaged.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        damaged.map_or(Ok(()), Err)
    }

    /// Seals a date that has so many parts and finished payments. Returns whether all that is left waits; `None` if nothing is left.
    async fn seal_counted(
        &self,
        date: BusinessDate,
        (number, finished): (u32, u64),
        deadline: &Deadline,
        outcome: &mut SealOutcome,
    ) -> Result<Option<bool>, SealError> {
        let waiting = outcome.waiting;
        let mut rows = self.rows_up_to(date, number).await?;
        if rows < finished && !deadline.has_come() {
            rows = self.seal_date(date, number, deadline, outcome).await?;
        }
        Ok((rows < finished).then_some(rows + outcome.waiting - waiting >= finished))
    }

    /// The number of sealed payments of a date, by its last part.
    async fn rows_up_to(&self, date: BusinessDate, number: u32) -> Result<u64, SealError> {
        if number == 0 {
            return Ok(0);
        }
        let part = Folder(&*self.files).part(&path(date, number)).await?;
        Ok(part.name.rows_before + part.rows() as u64)
    }
}
