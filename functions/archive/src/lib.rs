//! `archive`: every night, the heads of payments whose day is over move to the long-term table.

mod config;
mod past;
mod report;
mod shard;

use futures::StreamExt as _;
use lambda_runtime::{Error, LambdaEvent};
use payments_boot::{Clock, Deadline, Metrics};
use payments_store::{Store, StoreError};
use serde::{Deserialize, Serialize};

pub use config::Config;
pub use report::ArchiveReport;
use report::{ArchiveMetrics, Notices};
use shard::{Run, ShardArchive};

/// How many shards are worked on at once: 32 of them hold two pages of 1,000 entries of 0.3 KB and
/// 100 heads of 1 KB each, 23 MB in all.
const SHARDS_AT_ONCE: usize = 32;

/// What a schedule asks for: `{"action":"archive"}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// What to do.
    pub action: Action,
}

/// What the function can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Move what is past.
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
    /// The function with all it needs.
    #[must_use]
    pub fn new(config: Config, store: Store, clock: Clock, metrics: Metrics) -> Self {
        Self { config, store, clock, metrics }
    }

    /// Runs one tick, until nothing is left or shortly before Lambda's deadline.
    ///
    /// # Errors
    /// Where DynamoDB refuses, which repeating does not change; what was done stays done.
    pub async fn handle(&self, event: LambdaEvent<Request>) -> Result<ArchiveReport, Error> {
        let deadline = Deadline::before(event.context.deadline, &self.clock);
        match event.payload.action {
            Action::Archive => Ok(self.archive(deadline).await?),
        }
    }

    /// Archives what is past, of all shards.
    async fn archive(&self, deadline: Deadline) -> Result<ArchiveReport, StoreError> {
        let now = self.clock.now();
        let first_that_stays = past::first_that_stays(self.config.zone, now);
        let run = Run { archive: self, deadline, now, first_that_stays, notices: Notices::default() };
        let shards = futures::stream::iter(self.config.read_shards.all());
        let ends: Vec<_> =
            shards.map(|shard| ShardArchive::of(&run, shard).run()).buffer_unordered(SHARDS_AT_ONCE).collect().await;
        let (mut total, mut broken) = (ArchiveReport::default(), None);
        for (report, error) in ends {
            total.add(&report);
            broken = broken.or(error);
        }
        if run.notices.left_out() > 0 {
            tracing::warn!(left_out = run.notices.left_out(), "more payments stay than the log names");
        }
        // What was done is counted also where a shard broke.
        self.metrics.emit(self.clock.instant(), &ArchiveMetrics::from(&total));
        broken.map_or(Ok(total), Err)
    }
}
