//! `report`: writes each settlement to one report file, exactly once.
//!
//! A settlement is unreported while it is in the `unreported` index. A run gathers the index into an
//! attempt, commits the attempt by one conditional write, publishes its files, and removes from the index
//! exactly what the published file holds. After a crash anywhere, the next run completes it.
//!
//! | module | holds |
//! |---|---|
//! | `job` | the runs of one invocation, one after another |
//! | `gather` | unreported settlements of all shards, oldest first |
//! | `attempt` | the files of a run while they are written |
//! | `upload` | the upload of one file |
//! | `rows` | settlements as rows of CSV, written and read |
//! | `summary` | counts and sums |
//! | `publish` | the publication of a committed run's files |
//! | `published` | a published report as a restore reads it |
//! | `drain` | the removal of published settlements from the index |
//! | `stored` | a stored file, read piece by piece |
//! | `retry` | retries of failed calls |

mod attempt;
mod config;
mod drain;
mod error;
mod gather;
mod job;
mod outcome;
mod publish;
mod published;
mod retry;
mod rows;
mod stored;
mod summary;
mod upload;

use std::sync::Arc;

use chrono::TimeDelta;
use lambda_runtime::{Error, LambdaEvent};
use object_store::ObjectStore;
use payments_boot::{Clock, Deadline, Metrics};
use payments_model::causes;
use payments_store::Store;
use serde::{Deserialize, Serialize};

pub use config::{Config, MaxRows, MaxRowsError};
pub use error::ReportError;
pub use outcome::ReportOutcome;
pub use published::PublishedReport;
pub use rows::ReportedRow;

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
    config: Config,
    store: Store,
    /// The published reports, which are final.
    files: Arc<dyn ObjectStore>,
    /// The attempts, in a storage of their own: their files expire, and nothing final may.
    attempts: Arc<dyn ObjectStore>,
    clock: Clock,
    metrics: Metrics,
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

    /// Finishes the last run, then makes new ones until nothing is left, or until shortly before Lambda's
    /// deadline.
    ///
    /// # Errors
    /// [`ReportError`] if DynamoDB or S3 fails, or a committed file was changed. Completed work stays.
    pub async fn handle(&self, event: LambdaEvent<Request>) -> Result<ReportOutcome, Error> {
        let Request { action: Action::Report } = event.payload;
        let deadline = Deadline::before(event.context.deadline, &self.clock).earlier(FILE_CALL);
        let mut outcome = ReportOutcome::default();
        let run = self.run(&event.context.request_id, &deadline, &mut outcome).await;
        outcome.report_file_altered = matches!(run, Err(ReportError::Altered { .. }));
        // Also emitted when the run failed.
        self.metrics.emit(self.clock.instant(), &outcome);
        match run {
            Ok(()) => Ok(outcome),
            Err(error) => {
                tracing::error!(causes = ?causes(&error), "the report run failed");
                Err(error.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_any_thread<'f>(future: impl Future<Output = Result<ReportOutcome, Error>> + Send + 'f) {
        drop(future);
    }

    #[expect(dead_code, reason = "that it compiles is the test: futures cross threads in the local runner")]
    fn an_invocation_may_cross_threads(report: &'static Report, event: LambdaEvent<Request>) {
        on_any_thread(async move { report.handle(event).await });
    }
}
