//! The function: a run sweeps or redrives, as its schedule asks.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use lambda_runtime::{Error, LambdaEvent};
use payments_boot::{Clock, Deadline, Metrics, SWITCHED_CALL_TIMEOUT};
use payments_model::{BusinessDate, DayCounts, Outage, OutageKind, Status, Switch, UtcSecond, causes};
use payments_store::{CALL_TIMEOUT, Job, Store, StoreError};
use payments_work::{SWITCH_WORKS_WITHIN, ScheduledRun, SwitchReader};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::outcome::SweeperOutcome;
use crate::switch_seen::{self, SwitchSeen};

/// Period of the sweeps.
pub const SWEEP_EVERY: TimeDelta = TimeDelta::minutes(5);

/// Period of the redrives.
pub const REDRIVE_EVERY: TimeDelta = TimeDelta::hours(1);

/// The longest time between a read of the switch and a round of claims or redrives.
const SWITCH_AGE: Duration = Duration::from_secs(2);
const _: () = assert!(SWITCH_AGE.as_secs() + SWITCHED_CALL_TIMEOUT.as_secs() <= SWITCH_WORKS_WITHIN.as_secs());

/// A schedule's request: `{"action":"sweep"}` or `{"action":"redrive"}`.
pub type Request = payments_boot::Request<Action>;

/// The function's actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Claim payments that are due.
    Sweep,
    /// Redrive payments that have been pending for too long: send their requests again.
    Redrive,
}

/// The function.
#[derive(Debug, Clone)]
pub struct Sweeper {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
    pub(crate) switch_reader: SwitchReader,
}

/// The calls of a sample: a read and a write.
const SAMPLE_CALLS: u32 = 2;

/// The step that the switch permits.
pub(crate) enum Permitted {
    /// Go on, outside of the holds.
    Work(Arc<Switch>),
    /// End the run.
    Nothing,
}

impl Sweeper {
    /// Creates the function.
    pub fn new(config: Config, store: Store, clock: Clock, metrics: Metrics) -> Self {
        let switch_reader = SwitchReader::new(&store, &clock, SWITCH_AGE);
        Self { config, store, clock, metrics, switch_reader }
    }

    /// Sweeps or redrives until nothing is left, until the switch is on, or until shortly before Lambda's deadline.
    ///
    /// # Errors
    /// [`StoreError`](payments_store::StoreError) if DynamoDB fails in a way that a retry does not change.
    /// Completed work stays.
    pub async fn handle(&self, event: LambdaEvent<Request>) -> Result<SweeperOutcome, Error> {
        let deadline = Deadline::before(event.context.deadline, &self.clock);
        let begin = |job| ScheduledRun::begin(job, &self.clock, event.context.deadline);
        let (run, outcome, failure) = match event.payload.action {
            Action::Sweep => {
                let run = begin(Job::Sweep);
                let feed_missing = self.sample(&deadline).await;
                let (outcome, failure) = self.sweep(&deadline, feed_missing).await;
                (run, SweeperOutcome::Sweep(outcome), failure)
            }
            Action::Redrive => {
                let run = begin(Job::Redrive);
                let (outcome, failure) = self.redrive(&deadline).await;
                (run, SweeperOutcome::Redrive(outcome), failure)
            }
        };
        run.end(&outcome, failure.as_ref().map(|it| it as _), async |run| self.store.put_last_run(run).await).await;
        failure.map_or(Ok(outcome), |error| Err(error.into()))
    }

    /// Adds today's counts to the figures of the day, before the claims of a sweep, so that a sweep that needs all its time has a
    /// sample, too. Without time for all these calls, one after the other, it does nothing. A failed call is logged.
    /// Returns whether today's feed is missing by these counts: 1 or 0, and `None` if it is unknown or nobody expects a feed.
    async fn sample(&self, deadline: &Deadline) -> Option<u64> {
        if deadline.comes_within(CALL_TIMEOUT * SAMPLE_CALLS) {
            return None;
        }
        let now = self.clock.now();
        let today = self.config.zone.date_of(now);
        let mut feed_missing = None;
        let sample = async {
            let counts = self.store.counts_of_date(today).await?;
            feed_missing = self.feed_missing(today, now, &counts);
            self.store.add_sample(today, now, &counts).await
        };
        if let Err(error) = sample.await {
            tracing::warn!(causes = ?causes(&error), "today's counts are not sampled");
        }
        feed_missing
    }

    fn feed_missing(&self, today: BusinessDate, now: UtcSecond, counts: &DayCounts) -> Option<u64> {
        let Config { feed, zone, calendars, .. } = &self.config;
        let is_missing = feed.as_ref()?.is_missing(today, *zone, now, counts) && !calendars.are_closed(today);
        if is_missing {
            let (payments, cancelled) = (counts.total(), counts.count(Status::Cancelled));
            tracing::error!(%today, payments, cancelled, "today has fewer payments than its feed brings");
        }
        Some(is_missing.into())
    }

    /// Reads the switch before a round, unless the last read is recent.
    ///
    /// # Errors
    /// The switch was not read, and a retry may read it.
    pub(crate) async fn permitted(&self) -> Result<Permitted, StoreError> {
        match self.switch_reader.switch().await {
            Ok(switch) if switch.stopped => Ok(Permitted::Nothing),
            Ok(switch) => Ok(Permitted::Work(switch)),
            Err(error) if error.kind() == OutageKind::Broken => {
                tracing::error!(%error, "the switch cannot be read, so nothing is claimed or redriven");
                Ok(Permitted::Nothing)
            }
            Err(error) => Err(error),
        }
    }

    /// The times of the stop and the holds that the run has seen last.
    pub(crate) async fn switched_at(&self) -> Vec<UtcSecond> {
        match self.switch_reader.last().await {
            Some(Ok(switch)) => switch_seen::changes(&switch).map(|change| change.at).collect(),
            Some(Err(_)) | None => Vec::new(),
        }
    }

    /// The switch as the run that ends now has seen it.
    pub(crate) async fn switch_seen(&self) -> SwitchSeen {
        match self.switch_reader.last().await {
            Some(Ok(switch)) => SwitchSeen::new(&switch, self.clock.now()),
            Some(Err(_)) => SwitchSeen { switch_unreadable: 1, ..SwitchSeen::default() },
            // The run had no time for a round.
            None => SwitchSeen::default(),
        }
    }
}
