//! The function: a run writes reports until nothing is left or the deadline comes.

use std::sync::Arc;

use chrono::TimeDelta;
use lambda_runtime::{Error, LambdaEvent};
use object_store::ObjectStore;
use payments_boot::{Clock, Deadline, Metrics};
use payments_model::causes;
use payments_store::{Job, LastRun, Store};
use payments_work::ScheduledRun;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::ReportError;
use crate::outcome::ReportOutcome;

/// The most time that one call to the storage takes.
pub const FILE_CALL: TimeDelta = payments_files::CALL;

/// The schedule's request: `{"action":"report"}`.
pub type Request = payments_boot::Request<Action>;

/// The function's only action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Report unreported settlements.
    Report,
}

/// The function.
#[derive(Debug, Clone)]
pub struct Report {
    pub(crate) config: Config,
    pub(crate) store: Store,
    /// The published reports, which are final.
    pub(crate) files: Arc<dyn ObjectStore>,
    /// The attempts, in a storage of their own: their files expire, and final files must not.
    pub(crate) attempts: Arc<dyn ObjectStore>,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
}

impl Report {
    /// Creates the function. Its reports are published in the first storage, and its attempts are stored in the second.
    pub fn new(
        config: Config,
        store: Store,
        (files, attempts): (Arc<dyn ObjectStore>, Arc<dyn ObjectStore>),
        clock: Clock,
        metrics: Metrics,
    ) -> Self {
        Self { config, store, files, attempts, clock, metrics }
    }

    /// Finishes the last run, then makes new ones until nothing is left, or until shortly before Lambda's deadline.
    ///
    /// # Errors
    /// [`ReportError`] if DynamoDB or S3 fails, or a committed file was changed. Completed work stays.
    pub async fn handle(&self, event: LambdaEvent<Request>) -> Result<ReportOutcome, Error> {
        let Request { action: Action::Report } = event.payload;
        let deadline = Deadline::before(event.context.deadline, &self.clock).earlier(FILE_CALL);
        let scheduled = ScheduledRun::begin(Job::Report, &self.clock, event.context.deadline);
        let mut outcome = ReportOutcome::default();
        // Boxed because the future is as large as all the calls it may wait for.
        let run = Box::pin(self.run(&event.context.request_id, &deadline, &mut outcome)).await;
        outcome.report_file_altered = matches!(run, Err(ReportError::Altered { .. }));
        // Also emitted when the run failed.
        self.metrics.emit(self.clock.instant(), &outcome);
        let failure = run.err();
        let put = async |run: &LastRun| self.store.put_last_run(run).await;
        scheduled.end(&outcome, failure.as_ref().map(|it| it as _), put).await;
        match failure {
            None => Ok(outcome),
            Some(error) => {
                tracing::error!(causes = ?causes(&error), "the report run failed");
                Err(error.into())
            }
        }
    }
}
