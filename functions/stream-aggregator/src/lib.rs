//! `stream-aggregator`: keeps the counters of every date exact, whatever the stream repeats.
//!
//! Lambda delivers at least once: batches come again, cut differently, after a success too, and a
//! poller that lost its place starts from the oldest record. The checkpoint of the stream shard,
//! which moves in the same transaction as the counters, tells what has been counted.

mod config;
mod event;
mod fold;

use std::time::Duration;

use aws_lambda_events::dynamodb::TimeWindowEventResponse;
use lambda_runtime::Error;
use metrique_writer::Entry;
use payments_boot::{Clock, Metrics};
use payments_model::{Outage as _, OutageKind, causes};
use payments_store::{Committed, Store, StoreError};

pub use config::Config;
pub use event::{Event, EventError};
pub use fold::{Change, Effect, fold};

/// How often a batch is begun again because its checkpoint had moved, or was in use elsewhere:
/// 25 ms to 3.2 s of waiting, 6.4 s in all at the most. Then Lambda brings it again.
const MAX_TRIES: u32 = 8;

/// The wait after the first conflict, about; it doubles with each one that follows.
const FIRST_WAIT: Duration = Duration::from_millis(25);

/// The function.
#[derive(Debug, Clone)]
pub struct Aggregator {
    config: Config,
    store: Store,
    clock: Clock,
    metrics: Metrics,
}

/// What became of a batch.
#[derive(Debug, Default, Entry)]
#[entry(rename_all = "PascalCase")]
struct Tally {
    /// Changes that were counted.
    counted: u64,
    /// Changes that had been counted before.
    skipped: u64,
    /// Changes that cannot be read.
    unparsed: u64,
    /// Transactions.
    commits: u64,
    /// Transactions that met another one.
    conflicts: u64,
}

impl Aggregator {
    /// The function with all it needs.
    #[must_use]
    pub fn new(config: Config, store: Store, clock: Clock, metrics: Metrics) -> Self {
        Self { config, store, clock, metrics }
    }

    /// Counts one batch of stream records. The answer's state is always empty: what has to be
    /// remembered is in the checkpoint, which outlives every window.
    ///
    /// # Errors
    /// Where the mapping is set up wrongly or DynamoDB fails. The whole batch then comes again, and
    /// what was counted of it is not counted twice.
    pub async fn handle(&self, event: Event) -> Result<TimeWindowEventResponse, Error> {
        let stream_shard = event.stream_shard(&self.config.data.tables.payments)?.to_owned();
        let changes = event.changes()?;
        if !changes.is_empty() {
            let mut tally = Tally::default();
            let counted = self.count(&stream_shard, &changes, &mut tally).await;
            self.metrics.emit(self.clock.instant(), &tally);
            counted?;
        }
        Ok(TimeWindowEventResponse::default())
    }

    /// Counts changes until their checkpoint is behind them.
    async fn count(&self, stream_shard: &str, changes: &[Change], tally: &mut Tally) -> Result<(), StoreError> {
        let mut tries = 0;
        loop {
            match self.count_what_is_new(stream_shard, changes, tally).await {
                Ok(Committed::Done) => return Ok(()),
                Err(error) if error.kind() != OutageKind::Throttled || tries + 1 == MAX_TRIES => return Err(error),
                Ok(Committed::Elsewhere) if tries + 1 == MAX_TRIES => {
                    let source = "another invocation counts this stream shard, too".into();
                    return Err(StoreError::Throttled { operation: "TransactWriteItems", source });
                }
                Ok(Committed::Elsewhere) => {}
                Err(error) => tracing::info!(stream_shard, causes = ?causes(&error), "tried again"),
            }
            tally.conflicts += 1;
            self.clock.sleep(self.wait(stream_shard, tries)).await;
            tries += 1;
        }
    }

    /// Counts what lies behind the checkpoint as it stands now.
    async fn count_what_is_new(
        &self,
        stream_shard: &str,
        changes: &[Change],
        tally: &mut Tally,
    ) -> Result<Committed, StoreError> {
        let mut checkpoint = self.store.checkpoint(stream_shard).await?;
        let known = |change: &&Change| checkpoint.as_ref().is_some_and(|checkpoint| change.place <= *checkpoint);
        let skipped = changes.partition_point(|change| known(&change));
        let (mut new, commits) = (&changes[skipped..], fold(&changes[skipped..]));
        for commit in commits {
            let now = self.clock.now();
            let committed = self.store.commit_counts(stream_shard, checkpoint.as_ref(), &commit, now).await?;
            if committed == Committed::Elsewhere {
                return Ok(Committed::Elsewhere);
            }
            let (counted, rest) = new.split_at(new.partition_point(|change| change.place <= commit.last));
            tally.commits += 1;
            tally.note(counted);
            new = rest;
            checkpoint = Some(commit.last);
        }
        // What is left changes no counter.
        tally.note(new);
        // Counted neither now nor in an earlier try: somebody else brought the checkpoint this far.
        let all = u64::try_from(changes.len()).unwrap_or(u64::MAX);
        tally.skipped = all.saturating_sub(tally.counted + tally.unparsed);
        Ok(Committed::Done)
    }

    /// How long to wait after a conflict: about, so that two that met do not meet again. The chance
    /// follows from the shard and the time.
    fn wait(&self, stream_shard: &str, tries: u32) -> Duration {
        let shard = stream_shard.bytes().fold(0_u64, |seed, byte| seed.rotate_left(8) ^ u64::from(byte));
        let seed = shard ^ self.clock.instant().timestamp_micros().unsigned_abs();
        let longest = FIRST_WAIT * 2_u32.saturating_pow(tries);
        let longest = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(fastrand::Rng::with_seed(seed).u64(longest / 2..=longest))
    }
}

impl Tally {
    fn note(&mut self, counted: &[Change]) {
        for change in counted {
            match change.effect {
                Effect::Moved { .. } => self.counted += 1,
                Effect::Unreadable(_) => self.unparsed += 1,
            }
        }
    }
}
