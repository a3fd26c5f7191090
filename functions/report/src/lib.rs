//! `report`: every settlement that no report has taken yet is written to a file, exactly once.
//!
//! Being in the `unreported` index is the state "not reported". A run gathers what is in it into an
//! attempt, commits the attempt by one conditional write, publishes its files, and takes out of the
//! index exactly what the published file holds. After a crash anywhere, the next run completes it.
//!
//! | module | holds |
//! |---|---|
//! | `job` | the runs of one invocation, one after another |
//! | `gather` | what is unreported, over all shards, oldest settlement first |
//! | `attempt` | the files of a run while they are written |
//! | `upload` | one file on its way out |
//! | `rows` | a settlement as a line of CSV, there and back |
//! | `summary` | counts and sums |
//! | `publish` | a committed run's files, checked, at the names that readers use |
//! | `drain` | what was published leaves the index |
//! | `stored` | a stored file, read piece by piece |
//! | `storage`, `transport` | the place for reports, and the way there |

mod attempt;
mod config;
mod drain;
mod error;
mod gather;
mod job;
mod patience;
mod publish;
mod rows;
mod storage;
mod stored;
mod summary;
mod transport;
mod upload;

use std::sync::Arc;

use lambda_runtime::{Error, LambdaEvent};
use metrique_writer::Entry;
use object_store::ObjectStore;
use payments_boot::{Clock, Deadline, Metrics};
use payments_model::causes;
use payments_store::Store;
use serde::{Deserialize, Serialize};

pub use config::{Config, MaxRows, MaxRowsError};
pub use error::ReportError;
pub use storage::{Storage, StorageError};

/// What a schedule asks for: `{"action":"report"}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The only thing there is to do.
    pub action: Action,
}

/// What the function can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Report what is settled and was not reported.
    Report,
}

/// What an invocation did.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunReport {
    /// Runs committed.
    pub runs_committed: u64,
    /// Settlements in them.
    pub reported: u64,
    /// The files published, or found published by another run.
    pub published: Vec<String>,
    /// Payments taken out of `unreported`.
    pub drained: u64,
    /// Payments that another run had taken out.
    pub already_drained: u64,
    /// Payments that the index still showed, but that had been reported.
    pub skipped: u64,
    /// Payments that cannot be read, and so cannot be reported; the log says why.
    pub failed: u64,
    /// Whether there may be more for the next invocation to do.
    pub more_waits: bool,
    /// How long the oldest settlement that was found unreported had been waiting, in seconds; nothing
    /// where that could not be found out.
    pub oldest_unreported_seconds: Option<u64>,
}

/// The function.
#[derive(Debug, Clone)]
pub struct Report {
    config: Config,
    store: Store,
    files: Arc<dyn ObjectStore>,
    clock: Clock,
    metrics: Metrics,
}

#[derive(Entry)]
#[entry(rename_all = "PascalCase")]
struct ReportMetrics {
    reported: u64,
    skipped: u64,
    report_failed: u64,
    runs_committed: u64,
    drained: u64,
    report_file_altered: u64,
    oldest_unreported_seconds: Option<u64>,
}

impl Report {
    /// The function with all it needs. `files` is where its reports are stored.
    #[must_use]
    pub fn new(config: Config, store: Store, files: Arc<dyn ObjectStore>, clock: Clock, metrics: Metrics) -> Self {
        Self { config, store, files, clock, metrics }
    }

    /// Finishes the last run, then makes new ones, until nothing is left or shortly before Lambda's
    /// deadline.
    ///
    /// # Errors
    /// Where DynamoDB or S3 refuse, S3 does not answer, or a committed file is not what it was. What
    /// was done stays done.
    pub async fn handle(&self, event: LambdaEvent<Request>) -> Result<RunReport, Error> {
        let Request { action: Action::Report } = event.payload;
        let deadline = Deadline::before(event.context.deadline, &self.clock);
        let mut report = RunReport::default();
        let outcome = self.run(&event.context.request_id, &deadline, &mut report).await;
        // What was done is counted also where it ended badly.
        self.metrics.emit(
            self.clock.instant(),
            &ReportMetrics {
                reported: report.reported,
                skipped: report.skipped,
                report_failed: report.failed,
                runs_committed: report.runs_committed,
                drained: report.drained,
                report_file_altered: u64::from(matches!(outcome, Err(ReportError::Altered { .. }))),
                oldest_unreported_seconds: report.oldest_unreported_seconds,
            },
        );
        match outcome {
            Ok(()) => Ok(report),
            Err(error) => {
                tracing::error!(causes = ?causes(&error), "the report stops");
                Err(error.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_any_thread<'f>(future: impl Future<Output = Result<RunReport, Error>> + Send + 'f) {
        drop(future);
    }

    #[expect(dead_code, reason = "that it compiles is the test: futures cross threads in the local runner")]
    fn an_invocation_may_cross_threads(report: &'static Report, event: LambdaEvent<Request>) {
        on_any_thread(async move { report.handle(event).await });
    }
}
