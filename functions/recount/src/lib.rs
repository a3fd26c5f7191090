//! `recount`: every night, the counters of dates are compared with the payments themselves. On
//! request, those are corrected that were found wrong a day before, too, and have stood still since.

mod config;
mod look;
mod report;
mod request;
mod run;

use lambda_runtime::{Error, LambdaEvent};
use payments_boot::{Clock, Deadline, Metrics};
use payments_store::Store;

pub use config::Config;
pub use report::{DriftReport, RecountReport};
pub use request::{Action, Request, RequestError};
use run::Run;

/// The function.
#[derive(Debug, Clone)]
pub struct Recount {
    config: Config,
    store: Store,
    clock: Clock,
    metrics: Metrics,
}

impl Recount {
    /// The function with all it needs.
    #[must_use]
    pub fn new(config: Config, store: Store, clock: Clock, metrics: Metrics) -> Self {
        Self { config, store, clock, metrics }
    }

    /// Looks at every date asked for, or at as many as there is time for.
    ///
    /// # Errors
    /// [`RequestError`] for dates that cannot be asked for; and where DynamoDB refuses, which
    /// repeating does not change. What was done stays done.
    pub async fn handle(&self, event: LambdaEvent<Request>) -> Result<RecountReport, Error> {
        let deadline = Deadline::before(event.context.deadline, &self.clock);
        let dates = event.payload.dates(self.config.zone, self.clock.now())?;
        let mut run = Run::of(self, deadline, event.payload.action);
        // In a box: a run is as large as all the calls that it may wait for, and its callers are not to be.
        let broken = Box::pin(run.all(&dates)).await;
        // What was found is counted also where the run broke.
        self.metrics.emit(self.clock.instant(), &run.report.metrics());
        broken?;
        Ok(run.report)
    }
}
