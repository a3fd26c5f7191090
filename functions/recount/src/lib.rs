//! `recount`: compares the counters of dates with their payments every night, and repairs drift on request.
//!
//! A repair corrects a date only if the same drift was found at least 25 hours earlier.

mod config;
mod look;
mod outcome;
mod run;

use lambda_runtime::{Error, LambdaEvent};
use payments_boot::{Clock, Deadline, Metrics};
use payments_model::recount::Request;
use payments_store::Store;

pub use config::Config;
pub use outcome::{Drift, RecountOutcome};

/// The function.
#[derive(Debug, Clone)]
pub struct Recount {
    config: Config,
    store: Store,
    clock: Clock,
    metrics: Metrics,
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
        Ok(self.run(&dates, deadline, event.payload.action).await?)
    }
}
