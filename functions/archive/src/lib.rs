//! `archive`: moves the heads of payments whose day is over to the long-term table, every night.

mod config;
mod outcome;
mod readiness;
mod shard;

use chrono::TimeDelta;
use lambda_runtime::{Error, LambdaEvent};
use payments_boot::{Clock, Deadline, Metrics};
use payments_store::Store;
use serde::{Deserialize, Serialize};

pub use config::Config;
pub use outcome::ArchiveOutcome;

/// How often a run begins.
pub const ARCHIVE_EVERY: TimeDelta = TimeDelta::minutes(15);

/// The schedule's request: `{"action":"archive"}`.
pub type Request = payments_boot::Request<Action>;

/// The function's only action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Archive payments whose day is over.
    Archive,
}

/// The function.
#[derive(Debug, Clone)]
pub struct Archive {
    config: Config,
    store: Store,
    clock: Clock,
    metrics: Metrics,
}

impl Archive {
    /// Creates the function.
    pub fn new(config: Config, store: Store, clock: Clock, metrics: Metrics) -> Self {
        Self { config, store, clock, metrics }
    }

    /// Archives until nothing is left, or until shortly before Lambda's deadline.
    ///
    /// # Errors
    /// [`StoreError`](payments_store::StoreError) if DynamoDB fails in a way that a retry does not change.
    /// Completed work stays.
    pub async fn handle(&self, event: LambdaEvent<Request>) -> Result<ArchiveOutcome, Error> {
        let deadline = Deadline::before(event.context.deadline, &self.clock);
        match event.payload.action {
            Action::Archive => Ok(self.archive(deadline).await?),
        }
    }
}
