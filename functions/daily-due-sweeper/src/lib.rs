//! `daily-due-sweeper`: every few minutes, what has fallen due becomes pending; now and then,
//! what stays pending is handed over again.

mod config;
mod patience;
mod redrive;
mod sweep;

use lambda_runtime::{Error, LambdaEvent};
use metrique_writer::Entry;
use payments_boot::{Clock, Deadline, Metrics};
use payments_store::Store;
use serde::{Deserialize, Serialize};

pub use config::Config;
pub use redrive::RedriveReport;
pub use sweep::SweepReport;

/// What a schedule asks for: `{"action":"sweep"}` or `{"action":"redrive"}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Which of the two.
    pub action: Action,
}

/// What the function can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Make pending what has fallen due.
    Sweep,
    /// Hand over again what has been pending for too long.
    Redrive,
}

/// What the function did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Report {
    /// In a sweep.
    Sweep(SweepReport),
    /// In a redrive.
    Redrive(RedriveReport),
}

/// The function.
#[derive(Debug, Clone)]
pub struct Sweeper {
    config: Config,
    store: Store,
    clock: Clock,
    metrics: Metrics,
}

#[derive(Entry)]
#[entry(rename_all = "PascalCase")]
struct SweepMetrics {
    claimed: u64,
    already_claimed: u64,
    sweep_failed: u64,
    remaining: u64,
    shards_given_up: u64,
    oldest_overdue_seconds: u64,
}

#[derive(Entry)]
#[entry(rename_all = "PascalCase")]
struct RedriveMetrics {
    redriven: u64,
    stuck_pending: u64,
    redrive_failed: u64,
}

impl Sweeper {
    /// The function with all it needs.
    #[must_use]
    pub fn new(config: Config, store: Store, clock: Clock, metrics: Metrics) -> Self {
        Self { config, store, clock, metrics }
    }

    fn emit(&self, numbers: &impl Entry) {
        self.metrics.emit(self.clock.instant(), numbers);
    }

    fn emit_sweep(&self, report: &SweepReport) {
        self.emit(&SweepMetrics {
            claimed: report.claimed,
            already_claimed: report.already_claimed,
            sweep_failed: report.failed,
            remaining: report.remaining,
            shards_given_up: report.shards_given_up,
            oldest_overdue_seconds: report.oldest_overdue_seconds,
        });
    }

    /// Runs one tick, until nothing is left or shortly before Lambda's deadline.
    ///
    /// # Errors
    /// Where DynamoDB refuses, which repeating does not change; what was done stays done.
    pub async fn handle(&self, event: LambdaEvent<Request>) -> Result<Report, Error> {
        let deadline = Deadline::before(event.context.deadline, &self.clock);
        match event.payload.action {
            Action::Sweep => Ok(Report::Sweep(self.sweep(&deadline).await?)),
            Action::Redrive => {
                let report = self.redrive(&deadline).await?;
                self.emit(&RedriveMetrics {
                    redriven: report.redriven,
                    stuck_pending: report.stuck,
                    redrive_failed: report.failed,
                });
                Ok(Report::Redrive(report))
            }
        }
    }
}
