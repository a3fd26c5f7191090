//! The function: a run recounts the requested dates.

use lambda_runtime::{Error, LambdaEvent};
use payments_boot::{Clock, Deadline, Metrics};
use payments_model::recount::{Action, Request};
use payments_store::{Job, Store};
use payments_work::ScheduledRun;

use crate::config::Config;
use crate::outcome::RecountOutcome;

/// The function.
#[derive(Debug, Clone)]
pub struct Recount {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
}

impl Recount {
    /// Creates the function.
    pub fn new(config: Config, store: Store, clock: Clock, metrics: Metrics) -> Self {
        Self { config, store, clock, metrics }
    }

    /// Recounts the requested dates, or as many as there is time for.
    ///
    /// # Errors
    /// [`RequestError`](payments_model::recount::RequestError) for invalid dates. [`StoreError`](payments_store::StoreError) if DynamoDB fails in a
    /// way that a retry does not change. Completed work stays.
    pub async fn handle(&self, event: LambdaEvent<Request>) -> Result<RecountOutcome, Error> {
        let deadline = Deadline::before(event.context.deadline, &self.clock);
        let dates = event.payload.dates(self.config.zone, self.clock.now())?;
        let run = ScheduledRun::begin(Job::Recount, &self.clock, event.context.deadline);
        let Request { action, .. } = event.payload;
        let consent = event.payload.consent();
        let ticket = consent.ticket().filter(|_| action == Action::Repair).map(ToString::to_string);
        if action == Action::Repair {
            tracing::warn!(?consent, "counters are repaired");
        }
        let (outcome, failure) = self.run(&dates, deadline, (action, ticket)).await;
        run.end(&outcome, failure.as_ref().map(|it| it as _), async |run| self.store.put_last_run(run).await).await;
        failure.map_or(Ok(outcome), |error| Err(error.into()))
    }
}
