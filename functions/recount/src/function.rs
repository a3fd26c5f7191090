//! The function: a run recounts the requested dates.

use lambda_runtime::{Error, LambdaEvent};
use payments_boot::{Clock, Deadline, Metrics};
use payments_model::recount::{Action, Request};
use payments_store::{Job, Store};
use payments_work::{NoConsent, ScheduledRun, require_consent};

use crate::config::Config;
use crate::outcome::RecountOutcome;
use crate::repair::Repair;

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
    /// [`RequestError`](payments_model::recount::RequestError) for invalid dates. [`NoConsent`] if two persons did not agree on a repair. [`StoreError`](payments_store::StoreError) if DynamoDB fails in a
    /// way that a retry does not change. Completed work stays.
    pub async fn handle(&self, event: LambdaEvent<Request>) -> Result<RecountOutcome, Error> {
        let deadline = Deadline::before(event.context.deadline, &self.clock);
        let dates = event.payload.dates(self.config.zone, self.clock.now())?;
        let run = ScheduledRun::begin(Job::Recount, &self.clock, event.context.deadline);
        // Boxed because the futures are as large as all the calls they may wait for.
        let repair = match Box::pin(self.repair(&event.payload, &deadline)).await {
            Ok(repair) => repair,
            Err(error) => {
                let outcome = RecountOutcome::default();
                run.end(&outcome, Some(&error), async |run| self.store.put_last_run(run).await).await;
                return Err(error.into());
            }
        };
        let (outcome, failure) = Box::pin(self.run(&dates, deadline, repair)).await;
        run.end(&outcome, failure.as_ref().map(|it| it as _), async |run| self.store.put_last_run(run).await).await;
        failure.map_or(Ok(outcome), |error| Err(error.into()))
    }

    /// The repair that a request asks for, if it does and there is a consent to it.
    async fn repair(&self, request: &Request, deadline: &Deadline) -> Result<Option<Repair>, NoConsent> {
        if request.action != Action::Repair {
            return Ok(None);
        }
        let consent = request.consent();
        require_consent(&consent, (self.clock.now(), deadline), async |name| self.store.agreement(name).await).await?;
        tracing::warn!(?consent, "counters are repaired");
        Ok(Some(match consent.ticket() {
            Some(ticket) => Repair::Ticket(ticket.to_string()),
            None => Repair::Approved(request.drift.clone().unwrap_or_default()),
        }))
    }
}
