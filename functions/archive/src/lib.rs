//! `archive`: moves the heads of payments whose day is over to the long-term table, every night.

mod config;
mod outcome;
mod readiness;
mod shard;

use futures::StreamExt as _;
use lambda_runtime::{Error, LambdaEvent};
use payments_boot::{Clock, Deadline, Metrics};
use payments_store::{Store, StoreError};
use serde::{Deserialize, Serialize};

pub use config::Config;
pub use outcome::ArchiveOutcome;
use outcome::Notices;
use readiness::first_kept_date;
use shard::{Run, ShardArchive};

/// The most shards archived at once: 32 with two pages of 1,000 entries of 0.3 KB and 100 heads of 1 KB
/// each take 23 MB.
const SHARDS_AT_ONCE: usize = 32;

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
    #[must_use]
    pub fn new(config: Config, store: Store, clock: Clock, metrics: Metrics) -> Self {
        Self { config, store, clock, metrics }
    }

    /// Archives until nothing is left, or until shortly before Lambda's deadline.
    ///
    /// # Errors
    /// [`StoreError`] if DynamoDB fails in a way that a retry does not change. Completed work stays.
    pub async fn handle(&self, event: LambdaEvent<Request>) -> Result<ArchiveOutcome, Error> {
        let deadline = Deadline::before(event.context.deadline, &self.clock);
        match event.payload.action {
            Action::Archive => Ok(self.archive(deadline).await?),
        }
    }

    async fn archive(&self, deadline: Deadline) -> Result<ArchiveOutcome, StoreError> {
        let now = self.clock.now();
        let first_kept_date = first_kept_date(self.config.zone, now);
        let run = Run { archive: self, deadline, now, first_kept_date, notices: Notices::default() };
        let shards = futures::stream::iter(self.config.read_shards.all());
        let ends: Vec<_> =
            shards.map(|shard| ShardArchive::of(&run, shard).run()).buffer_unordered(SHARDS_AT_ONCE).collect().await;
        let (mut total, mut broken) = (ArchiveOutcome::default(), None);
        for (outcome, error) in ends {
            total.add(&outcome);
            broken = broken.or(error);
        }
        if run.notices.left_out() > 0 {
            tracing::warn!(
                left_out = run.notices.left_out(),
                "the log does not name all payments that were not archived"
            );
        }
        // Also emitted when a shard failed.
        self.metrics.emit(self.clock.instant(), &total);
        broken.map_or(Ok(total), Err)
    }
}
