//! `redate`: moves scheduled payments whose date was closed after they had been created, when an operator asks for it.
//!
//! A payment's date is decided once. If a calendar changes later, nothing moves by itself: several times a day this function counts the
//! payments that wait for its operator.

mod config;
mod judge;
mod outcome;
mod run;
mod shard;

use lambda_runtime::{Error, LambdaEvent};
use payments_boot::{Clock, Deadline, Metrics};
use payments_model::redate::Request;
use payments_store::Store;

pub use config::Config;
pub use outcome::{Left, RedateOutcome};

/// The function.
#[derive(Debug, Clone)]
pub struct Redate {
    config: Config,
    store: Store,
    clock: Clock,
    metrics: Metrics,
}

impl Redate {
    /// Creates the function.
    pub fn new(config: Config, store: Store, clock: Clock, metrics: Metrics) -> Self {
        Self { config, store, clock, metrics }
    }

    /// Looks at the payments of closed dates, and moves them if the request says so, as far as there is time.
    ///
    /// # Errors
    /// [`RequestError`](payments_model::redate::RequestError) for an invalid request. [`StoreError`](payments_store::StoreError) if DynamoDB fails in a
    /// way that a retry does not change. Completed work stays.
    pub async fn handle(&self, event: LambdaEvent<Request>) -> Result<RedateOutcome, Error> {
        let deadline = Deadline::before(event.context.deadline, &self.clock);
        let plan = event.payload.plan(&self.config.business_days, self.clock.now())?;
        // Boxed because the future is as large as all the calls it may wait for.
        Ok(Box::pin(self.run(&plan, &deadline)).await?)
    }
}
