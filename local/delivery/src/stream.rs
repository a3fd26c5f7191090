//! The event source mapping from a DynamoDB stream to a function.
//!
//! Source: *AWS Lambda Developer Guide*, "Process DynamoDB records with Lambda" and the pages that
//! the modules name. Each shard is read in order, one invocation at a time; a failing batch holds up
//! its own shard and no other; a parent shard is finished before its children are begun. What Lambda
//! has and this has not: parallelization factors above 1, pauses between retries (the caller decides
//! when to step), and the stream's own retention of 24 hours.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use payments_queue::Queue;
use serde_json::Value;

pub use crate::failure::Condition;
use crate::filter::FilterCriteria;
use crate::shard::{Context, ShardReader};
use crate::source::{Position, ShardId, Source, SourceError};
pub use crate::window::Invocation;
use crate::window::{self, Window};
use payments_model::sequence_number::SequenceNumber;

/// The largest batch size.
pub const MAX_BATCH_SIZE: usize = 10_000;

/// The longest batching window.
pub const MAX_BATCHING_WINDOW: TimeDelta = TimeDelta::seconds(300);

/// The longest tumbling window.
pub const MAX_TUMBLING_WINDOW: TimeDelta = TimeDelta::seconds(900);

/// The most retries that can be asked for; for ever is [`None`].
pub const MAX_RETRY_ATTEMPTS: u32 = 10_000;

/// The longest and the shortest record age that can be asked for; for ever is [`None`].
pub const RECORD_AGES: std::ops::RangeInclusive<TimeDelta> = TimeDelta::seconds(60)..=TimeDelta::seconds(604_800);

/// Where a mapping starts to read the shards that it finds first. Shards that appear later are read
/// from their beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartingPosition {
    /// At the oldest record.
    TrimHorizon,
    /// After the newest.
    Latest,
}

/// A mapping's settings, under their names in CloudFormation.
#[derive(Debug, Clone)]
pub struct StreamSettings {
    /// The function's name, which failure records mention.
    pub function_name: String,
    /// Where to start.
    pub starting_position: StartingPosition,
    /// The most records of one invocation: 1 to [`MAX_BATCH_SIZE`].
    pub batch_size: usize,
    /// How long to wait for a full batch: 0 to [`MAX_BATCHING_WINDOW`].
    pub maximum_batching_window: TimeDelta,
    /// Which records the function sees. The others are passed over.
    pub filter_criteria: FilterCriteria,
    /// How often a failing batch is retried; `None` is for ever.
    pub maximum_retry_attempts: Option<u32>,
    /// How old a record may be when the function sees it, within [`RECORD_AGES`]; `None` is any age.
    pub maximum_record_age: Option<TimeDelta>,
    /// Whether a failing batch is split.
    pub bisect_batch_on_function_error: bool,
    /// Whether the function says which records failed (`FunctionResponseTypes`).
    pub report_batch_item_failures: bool,
    /// The length of tumbling windows, 1 second to [`MAX_TUMBLING_WINDOW`]; `None` is no windows.
    pub tumbling_window: Option<TimeDelta>,
    /// Where discarded batches are reported.
    pub on_failure: Option<Queue>,
}

impl StreamSettings {
    /// AWS's defaults: batches of 100, retried for ever, from the oldest record.
    #[must_use]
    pub fn of(function_name: &str) -> Self {
        Self {
            function_name: function_name.to_owned(),
            starting_position: StartingPosition::TrimHorizon,
            batch_size: 100,
            maximum_batching_window: TimeDelta::zero(),
            filter_criteria: FilterCriteria::default(),
            maximum_retry_attempts: None,
            maximum_record_age: None,
            bisect_batch_on_function_error: false,
            report_batch_item_failures: false,
            tumbling_window: None,
            on_failure: None,
        }
    }

    fn check(&self) -> Result<(), SettingsError> {
        let windows = TimeDelta::seconds(1)..=MAX_TUMBLING_WINDOW;
        for (fits, name) in [
            ((1..=MAX_BATCH_SIZE).contains(&self.batch_size), "BatchSize"),
            (
                (TimeDelta::zero()..=MAX_BATCHING_WINDOW).contains(&self.maximum_batching_window),
                "MaximumBatchingWindowInSeconds",
            ),
            (self.maximum_retry_attempts.is_none_or(|n| n <= MAX_RETRY_ATTEMPTS), "MaximumRetryAttempts"),
            (self.maximum_record_age.is_none_or(|age| RECORD_AGES.contains(&age)), "MaximumRecordAgeInSeconds"),
            (self.tumbling_window.is_none_or(|length| windows.contains(&length)), "TumblingWindowInSeconds"),
        ] {
            if !fits {
                return Err(SettingsError(name));
            }
        }
        Ok(())
    }
}

/// A setting outside the range that AWS takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is outside its range")]
pub struct SettingsError(pub &'static str);

/// What one step did with one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The shard.
    pub shard: ShardId,
    /// Why the function was invoked.
    pub invocation: Invocation,
    /// How many records were handed over, or discarded unseen.
    pub records: usize,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of an invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is done.
    Succeeded,
    /// The last `remaining` records, or the end of the window, will be handed over again, perhaps in
    /// smaller batches.
    Retrying {
        /// The function's error, or what is wrong with its answer.
        why: String,
        /// How many records are left.
        remaining: usize,
    },
    /// Records were given up; the on-failure destination knows which.
    Discarded {
        /// Why.
        condition: Condition,
        /// How many.
        records: usize,
    },
}

/// A mapping at work.
pub struct StreamMapping {
    settings: StreamSettings,
    source: Source,
    shards: Vec<ShardReader>,
    cuts: Option<Box<dyn FnMut(usize) -> usize + Send>>,
    discards: u64,
}

impl StreamMapping {
    /// A mapping that has read nothing yet.
    ///
    /// # Errors
    /// [`SettingsError`] for what AWS refuses.
    pub fn new(settings: StreamSettings, source: impl Into<Source>) -> Result<Self, SettingsError> {
        settings.check()?;
        Ok(Self { settings, source: source.into(), shards: Vec::new(), cuts: None, discards: 0 })
    }

    /// Lets the caller cut batches: `cut` is told how many records one could have, and says how many
    /// it has, which is held between one and that. With unlimited retries, a batch that failed is
    /// cut anew, as by a poller that took over.
    #[must_use]
    pub fn with_batch_cuts(mut self, cut: impl FnMut(usize) -> usize + Send + 'static) -> Self {
        self.cuts = Some(Box::new(cut));
        self
    }

    /// Steps every shard that can be read, once: at most one invocation each. An empty answer means
    /// that there is nothing to do now.
    ///
    /// # Errors
    /// [`SourceError`]; nothing is lost, and the next step goes on.
    pub async fn step<Answer: Future<Output = Result<Value, String>>>(
        &mut self,
        now: DateTime<Utc>,
        function: impl Fn(Value) -> Answer,
    ) -> Result<Vec<Delivery>, SourceError> {
        let mut deliveries = Vec::new();
        for shard in self.ready().await? {
            deliveries.extend(self.step_shard(&shard, now, &function).await?);
        }
        Ok(deliveries)
    }

    /// Steps one shard: for callers that interleave shards themselves.
    ///
    /// # Errors
    /// [`SourceError`], also for a shard that is not known yet ([`Self::ready`] finds them).
    pub async fn step_shard<Answer: Future<Output = Result<Value, String>>>(
        &mut self,
        shard: &ShardId,
        now: DateTime<Utc>,
        function: impl Fn(Value) -> Answer,
    ) -> Result<Option<Delivery>, SourceError> {
        let reader = self.shards.iter_mut().find(|reader| reader.id == *shard);
        let reader = reader.ok_or_else(|| SourceError::NoShard(shard.clone()))?;
        let context = Context {
            settings: &self.settings,
            source: &self.source,
            cuts: self.cuts.as_deref_mut(),
            discards: &mut self.discards,
            now,
        };
        reader.step(context, function).await
    }

    /// Steps until a step finds nothing to do, at most `steps` times (a poison record that is retried
    /// for ever never lets it), and tells everything that was done.
    ///
    /// # Errors
    /// [`SourceError`].
    pub async fn drain<Answer: Future<Output = Result<Value, String>>>(
        &mut self,
        now: DateTime<Utc>,
        steps: usize,
        function: impl Fn(Value) -> Answer,
    ) -> Result<Vec<Delivery>, SourceError> {
        let mut all = Vec::new();
        for _ in 0..steps {
            let deliveries = self.step(now, &function).await?;
            if deliveries.is_empty() {
                break;
            }
            all.extend(deliveries);
        }
        Ok(all)
    }

    /// The shards that can be read now: not finished, and without an unfinished parent. Finds new
    /// shards.
    ///
    /// # Errors
    /// [`SourceError`].
    pub async fn ready(&mut self) -> Result<Vec<ShardId>, SourceError> {
        // Children appear when a shard ends. A shard in memory can appear at any time.
        let childless = |id: &ShardId| !self.shards.iter().any(|shard| shard.parent.as_ref() == Some(id));
        let ended = self.shards.iter().any(|shard| shard.is_closed() && childless(&shard.id));
        if self.shards.is_empty() || ended || matches!(self.source, Source::InMemory(_)) {
            let first = self.shards.is_empty();
            for found in self.source.shards().await? {
                if !self.shards.iter().any(|shard| shard.id == found.id) {
                    let latest = first && self.settings.starting_position == StartingPosition::Latest;
                    let position = if latest { Position::Latest } else { Position::TrimHorizon };
                    self.shards.push(ShardReader::new(found, position));
                }
            }
        }
        let unfinished = |id: &ShardId| self.shards.iter().any(|shard| shard.id == *id && !shard.is_finished());
        let ready = |shard: &&ShardReader| !shard.is_finished() && !shard.parent.as_ref().is_some_and(unfinished);
        Ok(self.shards.iter().filter(ready).map(|shard| shard.id.clone()).collect())
    }

    /// The last record of each shard that is done with: handled, filtered out or discarded, and
    /// every one before it.
    #[must_use]
    pub fn checkpoints(&self) -> BTreeMap<ShardId, Option<SequenceNumber>> {
        self.shards.iter().map(|shard| (shard.id.clone(), shard.checkpoint().cloned())).collect()
    }

    /// Forgets every place and every window's state: as a mapping that is created again, it reads
    /// from the oldest records.
    pub fn restart_from_trim_horizon(&mut self) {
        self.shards.iter_mut().for_each(ShardReader::restart);
    }

    /// Hands over records of the past once more, from one sequence number to another, both included,
    /// as Lambda does "in rare cases, such as error handling", where they "might be processed out of
    /// order". Neither the answers nor the places of the mapping matter; a window's state is empty.
    /// Returns how many records were handed over.
    ///
    /// # Errors
    /// [`SourceError`].
    pub async fn redeliver<Answer: Future<Output = Result<Value, String>>>(
        &mut self,
        shard: &ShardId,
        from: &SequenceNumber,
        to: &SequenceNumber,
        function: impl Fn(Value) -> Answer,
    ) -> Result<usize, SourceError> {
        let mut records = self.source.read_all(shard, Position::At(from.clone())).await?;
        records
            .retain(|record| record.sequence_number() <= to && self.settings.filter_criteria.matches(record.event()));
        let start = |at| self.settings.tumbling_window.map(|length| window::start(at, length));
        for window in records.chunk_by(|a, b| start(a.created_at()) == start(b.created_at())) {
            for batch in window.chunks(self.settings.batch_size) {
                let open = self.settings.tumbling_window.map(|length| Window::holding(batch[0].created_at(), length));
                let event = window::event(batch, open.as_ref(), shard, self.source.arn(), Invocation::Batch);
                let _answer = function(event).await;
            }
        }
        Ok(records.len())
    }
}

#[cfg(test)]
mod tests;
