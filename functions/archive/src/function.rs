//! The function: a run archives until nothing is left or the deadline comes.

use chrono::TimeDelta;
use lambda_runtime::{Error, LambdaEvent};
use payments_boot::{Clock, Deadline, Metrics};
use payments_store::{Job, Store};
use payments_work::ScheduledRun;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::outcome::ArchiveOutcome;

/// Period of the runs.
pub const ARCHIVE_EVERY: TimeDelta = TimeDelta::minutes(15);

/// The schedule's request, `{"action":"archive"}`.
pub type Request = payments_boot::Request<Action>;

/// The function's actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Archive cancelled payments whose day is over, and settled ones that should have expired.
    Archive,
}

/// The function.
#[derive(Debug, Clone)]
pub struct Archive {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
}

impl Archive {
    /// Creates the function.
    pub fn new(config: Config, store: Store, clock: Clock, metrics: Metrics) -> Self {
        Self { config, store, clock, metrics }
    }

    /// Archives until nothing is left, or until shortly before Lambda's deadline.
    ///
    /// # Errors
    /// [`StoreError`](payments_store::StoreError) if DynamoDB fails in a way that a retry does not change.
    /// Completed work stays.
    pub async fn handle(&self, event: LambdaEvent<Request>) -> Result<ArchiveOutcome, Error> {
        let Action::Archive = event.payload.action;
        let run = ScheduledRun::begin(Job::Archive, &self.clock, event.context.deadline);
        let (outcome, failure) = self.archive(Deadline::before(event.context.deadline, &self.clock)).await;
        run.end(&outcome, failure.as_ref().map(|it| it as _), async |run| self.store.put_last_run(run).await).await;
        failure.map_or(Ok(outcome), |error| Err(error.into()))
    }
}
