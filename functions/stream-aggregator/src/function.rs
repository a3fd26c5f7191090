//! The function: counts a batch of changes, with retries.

use std::time::Duration;

use aws_lambda_events::dynamodb::TimeWindowEventResponse;
use lambda_runtime::{Error, LambdaEvent};
use metrique_writer::Entry;
use payments_boot::{Clock, Deadline, Metrics};
use payments_model::{Logged, Outage as _, OutageKind, causes};
use payments_store::{Committed, LogHead, Store, StoreError};
use payments_work::Waits;

use crate::config::Config;
use crate::event::Event;
use crate::fold::{Change, Effect, fold};
use crate::gap;

/// The most tries of a commit whose checkpoint moved, or whose writes were throttled. The waits grow from 25 ms to
/// 1.6 s, and are at most 16 s in all. Then Lambda retries the batch. When a feed begins, the functions of all stream
/// shards commit at the same moment, and the log's partition throttles for some seconds: see docs/performance.md, Limits
/// of the log.
const MAX_TRIES: u32 = 16;

/// The longest waits after tries that conflicted or were throttled.
pub const CONFLICT_WAITS: Waits = Waits { first: Duration::from_millis(25), doublings: 6, most: MAX_TRIES - 1 };

/// The most tries of a commit that fails because another stream shard has appended to the log. Such
/// failures are normal: all stream shards append to one log.
const MAX_LOG_TRIES: u32 = 40;

/// The longest waits after tries that failed because the log had moved.
pub const LOG_WAITS: Waits = Waits { first: Duration::from_millis(30), doublings: 3, most: MAX_LOG_TRIES - 1 };

/// The reason why a batch was not counted as a whole. Counted changes stay counted.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    /// DynamoDB failed, or the checkpoint cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another invocation moved the checkpoint before each try.
    #[error(
        "the checkpoint of stream shard {0} moved {MAX_TRIES} times: another invocation counts this stream shard; \
         check that the stream has one mapping to this function"
    )]
    CheckpointMoved(String),
    /// Other stream shards appended to the log before each try.
    #[error(
        "the log moved {MAX_LOG_TRIES} times before the changes of stream shard {0}; Lambda delivers them again; if the log's \
         table was restored, see docs/restore.md, A new epoch of the log"
    )]
    LogMoved(String),
    /// The log holds the changes of another stream, as after a restore.
    #[error(
        "the log holds the changes of {0}, and these are of {1}: the log takes no changes of another stream; \
         see docs/restore.md, A new epoch of the log"
    )]
    OtherSource(String, String),
    /// An event cannot be written.
    #[error("an event cannot be written as JSON: {0}")]
    Event(#[from] serde_json::Error),
    /// The deadline came.
    #[error("the deadline came before all changes of stream shard {0} were counted; Lambda delivers them again")]
    OutOfTime(String),
}

/// The function.
#[derive(Debug, Clone)]
pub struct Aggregator {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
}

/// The metrics of a batch.
#[derive(Debug, Default, Entry)]
#[entry(rename_all = "PascalCase")]
struct Tally {
    /// Changes that were counted.
    counted: u64,
    /// Changes that were counted before.
    skipped: u64,
    /// Changes that cannot be read.
    changes_unparsed: u64,
    /// Changes that cannot be read, or whose version does not follow the payment's version before.
    changes_irregular: u64,
    /// Transactions that were committed.
    commits: u64,
    /// Transactions that conflicted with another transaction or were throttled.
    conflicts: u64,
    /// Events that were appended to the log.
    logged_events: u64,
    /// Transactions that failed because another stream shard had appended to the log.
    log_moves: u64,
    /// Gaps that were marked in the log.
    log_gaps: u64,
}

/// The changes of a batch, with their stream and stream shard.
#[derive(Debug, Clone, Copy)]
struct Batch<'b> {
    stream_shard: &'b str,
    /// The ARN of the stream.
    source: &'b str,
    changes: &'b [Change],
}

impl Aggregator {
    /// Creates the function.
    pub fn new(config: Config, store: Store, clock: Clock, metrics: Metrics) -> Self {
        Self { config, store, clock, metrics }
    }

    /// Counts one batch of stream records. The answer's window state stays empty: the checkpoint holds the state.
    ///
    /// # Errors
    /// [`EventError`](crate::event::EventError) if the mapping is configured wrongly, [`CountError`] if not all changes were counted.
    /// Lambda then retries the whole batch, and nothing is counted twice.
    pub async fn handle(&self, event: LambdaEvent<Event>) -> Result<TimeWindowEventResponse, Error> {
        let deadline = Deadline::before(event.context.deadline, &self.clock);
        let (event, table) = (event.payload, &self.config.data.tables.payments);
        let stream_shard = event.stream_shard(table)?.to_owned();
        let changes = event.changes(table, self.clock.now())?;
        if !changes.is_empty() {
            let mut tally = Tally::default();
            let batch = Batch { stream_shard: &stream_shard, source: event.source(), changes: &changes };
            let counted = self.count(batch, &deadline, &mut tally).await;
            self.metrics.emit(self.clock.instant(), &tally);
            counted?;
        }
        Ok(TimeWindowEventResponse::default())
    }

    /// Counts changes, with retries, until the checkpoint has passed them.
    async fn count(&self, batch: Batch<'_>, deadline: &Deadline, tally: &mut Tally) -> Result<(), CountError> {
        let stream_shard = batch.stream_shard;
        let (mut conflicts, mut log_moves) = (CONFLICT_WAITS.begin(), LOG_WAITS.begin());
        loop {
            let commits = tally.commits;
            let counted = self.count_new(batch, deadline, tally).await;
            if tally.commits > commits {
                (conflicts, log_moves) = (CONFLICT_WAITS.begin(), LOG_WAITS.begin());
            }
            let why = match counted {
                Ok(Committed::Done) => return Ok(()),
                Ok(Committed::LogMoved) => {
                    tally.log_moves += 1;
                    let wait = log_moves.next_wait().ok_or_else(|| CountError::LogMoved(stream_shard.to_owned()))?;
                    deadline.sleep(self.jitter(stream_shard, wait)).await;
                    continue;
                }
                Ok(Committed::Elsewhere) => CountError::CheckpointMoved(stream_shard.to_owned()),
                Err(CountError::Store(error)) if error.kind() == OutageKind::Throttled => {
                    tracing::info!(stream_shard, causes = ?causes(&error), "a commit was throttled or conflicted");
                    CountError::Store(error)
                }
                Err(error) => return Err(error),
            };
            let Some(wait) = conflicts.next_wait() else { return Err(why) };
            tally.conflicts += 1;
            deadline.sleep(self.jitter(stream_shard, wait)).await;
        }
    }

    /// Counts the changes after the checkpoint, in as many commits as needed. Returns early if a commit
    /// fails because the checkpoint or the log has moved.
    async fn count_new(
        &self,
        Batch { stream_shard, source, changes }: Batch<'_>,
        deadline: &Deadline,
        tally: &mut Tally,
    ) -> Result<Committed, CountError> {
        let in_time = || {
            if deadline.has_come() { Err(CountError::OutOfTime(stream_shard.to_owned())) } else { Ok(()) }
        };
        in_time()?;
        let mut checkpoint = self.store.checkpoint(stream_shard).await?;
        let known =
            |change: &&Change| checkpoint.as_ref().is_some_and(|checkpoint| change.sequence_number <= *checkpoint);
        // Test: each_change_is_counted_once_however_often_it_is_delivered
        let skipped = changes.partition_point(|change| known(&change));
        let mut new = &changes[skipped..];
        if new.iter().all(Change::is_neutral) {
            tally.pass(new, changes);
            return Ok(Committed::Done);
        }
        in_time()?;
        let mut log = self.log_head(source).await?;
        let now = self.clock.now();
        let gap = gap::gap_before(new, &log, now);
        let mut gaps = u64::from(gap.is_some());
        let gap = gap.map(|gap| gap.json(log.epoch, log.next)).transpose()?;
        for commit in fold(new, log.epoch, gap)? {
            in_time()?;
            match self.store.commit_counts(stream_shard, checkpoint.as_ref(), &commit, &log, now).await? {
                Committed::Done => {}
                moved => return Ok(moved),
            }
            if !commit.events.is_empty() {
                tally.logged_events += commit.events.len() as u64;
                tally.log_gaps += std::mem::take(&mut gaps);
                log = log.after_append(now);
            }
            let (counted, rest) = new.split_at(new.partition_point(|change| change.sequence_number <= commit.last));
            tally.commits += 1;
            tally.note(counted);
            new = rest;
            checkpoint = Some(commit.last);
        }
        // The changes that are left affect no counter and cause no event.
        tally.pass(new, changes);
        Ok(Committed::Done)
    }

    /// Returns the log's head. The log accepts the changes of only one stream.
    async fn log_head(&self, source: &str) -> Result<LogHead, CountError> {
        let head = self.store.log_head().await?.unwrap_or_else(|| LogHead::first(source, self.clock.now()));
        if head.source == source { Ok(head) } else { Err(CountError::OtherSource(head.source, source.to_owned())) }
    }

    /// Returns a wait of up to `longest`, with jitter seeded by the shard and the time.
    fn jitter(&self, stream_shard: &str, longest: Duration) -> Duration {
        let shard = stream_shard.bytes().fold(0_u64, |seed, byte| seed.rotate_left(8) ^ u64::from(byte));
        let seed = shard ^ self.clock.instant().timestamp_micros().unsigned_abs();
        let longest = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(fastrand::Rng::with_seed(seed).u64(longest / 2..=longest))
    }
}

impl Tally {
    /// Notes the rest of a batch, which has the changes `all`. An earlier invocation counted all changes
    /// that this invocation has not counted.
    fn pass(&mut self, rest: &[Change], all: &[Change]) {
        self.note(rest);
        let all = u64::try_from(all.len()).unwrap_or(u64::MAX);
        self.skipped = all.saturating_sub(self.counted + self.changes_unparsed);
    }

    fn note(&mut self, counted: &[Change]) {
        for change in counted {
            self.changes_irregular += u64::from(matches!(change.logged, Logged::Irregular(_)));
            match change.effect {
                Effect::Moved { .. } => self.counted += 1,
                Effect::Unreadable(_) => self.changes_unparsed += 1,
            }
        }
    }
}
