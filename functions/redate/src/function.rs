//! The function: a run looks at the payments of closed dates, and moves them on request.

use lambda_runtime::{Error, LambdaEvent};
use payments_boot::{Clock, Deadline, Metrics};
use payments_model::redate::{Action, Request};
use payments_store::{Job, Store};
use payments_work::ScheduledRun;

use crate::config::Config;
use crate::outcome::RedateOutcome;

/// The function.
#[derive(Debug, Clone)]
pub struct Redate {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
}

impl Redate {
    /// Creates the function.
    pub fn new(config: Config, store: Store, clock: Clock, metrics: Metrics) -> Self {
        Self { config, store, clock, metrics }
    }

    /// Looks at the payments of closed dates, and moves them if the request says so, until its time is over.
    ///
    /// # Errors
    /// [`RequestError`](payments_model::redate::RequestError) for an invalid request, or for more payments than its consent covers. [`NoConsent`](payments_work::NoConsent) if two persons did not agree on it. [`StoreError`](payments_store::StoreError) if DynamoDB fails in a
    /// way that a retry does not change. Completed work stays.
    pub async fn handle(&self, event: LambdaEvent<Request>) -> Result<RedateOutcome, Error> {
        let deadline = Deadline::before(event.context.deadline, &self.clock);
        let plan = event.payload.plan(&self.config.business_days, self.clock.now())?;
        let job = if plan.action == Action::Look { Job::Look } else { Job::Move };
        let run = ScheduledRun::begin(job, &self.clock, event.context.deadline);
        // Boxed because the futures are as large as all the calls they may wait for.
        let (outcome, failure) = match Box::pin(self.has_consent(&plan, &deadline)).await {
            Ok(true) => {
                let (outcome, failure) = Box::pin(self.run(&plan, &deadline)).await;
                (outcome, failure.map(Error::from))
            }
            Ok(false) => (self.not_begun(&plan), None),
            Err(error) => (RedateOutcome::default(), Some(error)),
        };
        run.end(&outcome, failure.as_deref().map(|it| it as _), async |run| self.store.put_last_run(run).await).await;
        failure.map_or(Ok(outcome), Err)
    }
}
