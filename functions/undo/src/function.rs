//! The function: plans an undo, begins its run, or goes on with the runs that are not at their end.

use std::sync::Arc;

use chrono::TimeDelta;
use lambda_runtime::{Error, LambdaEvent};
use object_store::ObjectStore;
use payments_boot::{Clock, Deadline, Metrics};
use payments_model::causes;
use payments_model::undo::Request;
use payments_store::Store;

use crate::config::Config;
use crate::error::UndoError;
use crate::outcome::{UndoMetrics, UndoOutcome};

/// The time that is kept for the end of a part: its last payments, whose looks take four calls of the store, then its file, and the
/// move of the place.
pub const RESERVED: TimeDelta = TimeDelta::seconds(60);

/// The function.
#[derive(Debug, Clone)]
pub struct Undo {
    pub(crate) config: Config,
    pub(crate) store: Store,
    /// The plans and the results.
    pub(crate) files: Arc<dyn ObjectStore>,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
}

/// The deadlines of an invocation.
#[derive(Debug)]
pub(crate) struct Deadlines {
    /// The deadline of new work.
    pub(crate) work: Deadline,
    /// The deadline of the calls that store the work.
    pub(crate) last: Deadline,
}

impl Undo {
    /// Creates the function.
    pub fn new(config: Config, store: Store, files: Arc<dyn ObjectStore>, clock: Clock, metrics: Metrics) -> Self {
        Self { config, store, files, clock, metrics }
    }

    /// Answers a request, until shortly before Lambda's deadline.
    ///
    /// # Errors
    /// [`RequestError`](payments_model::undo::RequestError) for an invalid request; a plan with another hash; failed calls. Completed
    /// work stays.
    pub async fn handle(&self, event: LambdaEvent<Request>) -> Result<UndoOutcome, Error> {
        let last = Deadline::before(event.context.deadline, &self.clock);
        let deadlines = Deadlines { work: last.earlier(RESERVED), last };
        // Boxed because the future is as large as all the calls it may wait for.
        let is_asked = !matches!(event.payload, Request::Continue);
        let outcome = Box::pin(self.answer(event.payload, &deadlines)).await;
        match outcome {
            Ok(outcome) => Ok(outcome),
            Err(error) => {
                tracing::error!(causes = ?causes(&error), "the undo failed");
                // The console does not wait for what it asked for.
                if is_asked {
                    let failed = UndoMetrics::from_runs(&[], 1, self.clock.now());
                    self.metrics.emit(self.clock.instant(), &failed);
                }
                Err(error.into())
            }
        }
    }

    async fn answer(&self, request: Request, deadlines: &Deadlines) -> Result<UndoOutcome, UndoError> {
        let (runs, failures) = match request.checked()? {
            Request::Plan { id, select } => {
                return Ok(UndoOutcome::Planned(self.plan(&id, &select, &deadlines.work).await?));
            }
            Request::Run(approved) => (vec![self.run(&approved, deadlines).await?], Vec::new()),
            Request::Continue => self.go_on(deadlines).await?,
        };
        // Without a run there is nothing to measure, and a metric of each idle run would cost.
        if !runs.is_empty() || !failures.is_empty() {
            let failed = u64::try_from(failures.len()).unwrap_or(u64::MAX);
            self.metrics.emit(self.clock.instant(), &UndoMetrics::from_runs(&runs, failed, self.clock.now()));
        }
        failures.into_iter().next().map_or(Ok(UndoOutcome::Ran { runs }), Err)
    }
}
