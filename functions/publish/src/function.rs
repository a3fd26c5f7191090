//! The function: serves the journal, the webhook endpoints and the event bus at the same time.

use std::sync::Arc;

use lambda_runtime::{Error, LambdaEvent};
use object_store::ObjectStore;
use payments_boot::{Clock, Deadline, Metrics};
use payments_model::causes;
use payments_store::{Job, LastRun, Store};
use payments_work::ScheduledRun;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bus::EventBus;
use crate::error::PublishError;
use crate::outcome::PublishOutcome;
use crate::webhooks::Webhooks;

/// The events that invoke the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub enum Request {
    /// The schedule: `{"action":"publish"}`.
    Tick,
    /// The stream of the log's table: the log has a new segment.
    Woken,
}

impl TryFrom<Value> for Request {
    type Error = serde_json::Error;

    fn try_from(event: Value) -> Result<Self, Self::Error> {
        if event["Records"].is_array() {
            return Ok(Self::Woken);
        }
        let payments_boot::Request { action: Action::Publish } = serde_json::from_value(event)?;
        Ok(Self::Tick)
    }
}

/// The schedule's only action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Write the events that the journal lacks, and deliver the events that the endpoints and the bus lack.
    Publish,
}

/// The function.
#[derive(Debug, Clone)]
pub struct Publish {
    pub(crate) store: Store,
    pub(crate) files: Arc<dyn ObjectStore>,
    pub(crate) webhooks: Webhooks,
    pub(crate) bus: Option<Arc<dyn EventBus>>,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
}

impl Publish {
    /// Creates the function. Its journal is stored in `files`.
    pub fn new(store: Store, files: Arc<dyn ObjectStore>, webhooks: Webhooks, clock: Clock, metrics: Metrics) -> Self {
        Self { store, files, webhooks, bus: None, clock, metrics }
    }

    /// Returns the same function with an event bus, if one is given.
    #[must_use]
    pub fn with_bus(self, bus: Option<Arc<dyn EventBus>>) -> Self {
        Self { bus, ..self }
    }

    /// Delivers the events that the endpoints and the bus lack, and on the schedule also writes the events
    /// that the journal lacks, until shortly before Lambda's deadline.
    ///
    /// # Errors
    /// A [`PublishError`](crate::error::PublishError) of the journal, the endpoints or the bus. Completed
    /// work stays.
    pub async fn handle(&self, event: LambdaEvent<Request>) -> Result<PublishOutcome, Error> {
        let run = ScheduledRun::begin(Job::Publish, &self.clock, event.context.deadline);
        let deadline = Deadline::before(event.context.deadline, &self.clock);
        let mut outcome = PublishOutcome::default();
        let journal = async {
            match event.payload {
                Request::Tick => self.run(&deadline.earlier(payments_files::CALL), &mut outcome).await,
                // The stream writes no journal: a file for each segment would make a million files a month.
                Request::Woken => Ok(()),
            }
        };
        // The futures are boxed, because the compiler cannot resolve the type of such a long chain of calls.
        let (mut delivered, mut fed) = (None, None);
        let webhooks = Box::pin(self.deliver(&deadline, &mut delivered));
        let bus = Box::pin(self.feed(&deadline, &mut fed));
        let (journal, webhooks, bus) = tokio::join!(Box::pin(journal), webhooks, bus);
        // A part that failed does not know how far behind it is. It counts as behind, so that its alarm goes off.
        if journal.is_err() {
            outcome.journal_segments_behind = outcome.journal_segments_behind.max(1);
        }
        if webhooks.is_err() {
            delivered.get_or_insert_default().fall_behind();
        }
        if bus.is_err() {
            fed.get_or_insert_default().fall_behind();
        }
        (outcome.webhooks, outcome.bus) = (delivered, fed);
        for (what, done) in [("webhooks", &webhooks), ("event bus", &bus)] {
            if let Err(error) = done {
                tracing::error!(causes = ?causes(error), what, "not all events up to the log's end are delivered");
            }
        }
        // The metrics are emitted even if the run failed.
        self.emit(event.payload, &outcome);
        let failure = journal.err().or(webhooks.err()).or(bus.err());
        if event.payload == Request::Tick {
            Box::pin(self.note(run, &outcome, failure.as_ref())).await;
        }
        match failure {
            None => Ok(outcome),
            Some(error) => {
                tracing::error!(causes = ?causes(&error), "the run is not complete");
                Err(error.into())
            }
        }
    }

    /// Puts the outcome, with the times of waiting events. A run that the stream invoked puts none: it did not serve the
    /// journal.
    async fn note(&self, run: ScheduledRun, outcome: &PublishOutcome, failure: Option<&PublishError>) {
        let mut outcome = outcome.clone();
        if let Some(webhooks) = &mut outcome.webhooks {
            webhooks.waiting = Box::pin(self.waiting(&run)).await.unwrap_or_default();
        }
        let put = async |run: &LastRun| self.store.put_last_run(run).await;
        run.end(&outcome, failure.map(|it| it as _), put).await;
    }

    fn emit(&self, request: Request, outcome: &PublishOutcome) {
        let at = self.clock.instant();
        match request {
            Request::Tick => self.metrics.emit(at, outcome),
            // The invocation did not serve the journal, so it emits no metrics about the journal.
            Request::Woken => {
                outcome.webhooks.iter().for_each(|delivered| self.metrics.emit(at, delivered));
                outcome.bus.iter().for_each(|fed| self.metrics.emit(at, fed));
            }
        }
    }
}
