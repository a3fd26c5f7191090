//! The event source mapping from a DynamoDB stream to a function.
//!
//! Source: *AWS Lambda Developer Guide*, "Process DynamoDB records with Lambda" and the pages that the modules name.
//! Each shard is read in order, one invocation at a time. A failing batch blocks its own shard and no other. A parent
//! shard is finished before its children begin. Not simulated: parallelization factors above 1, pauses between retries
//! (the caller decides when to step). A stream in memory can be trimmed; a shard's reader then continues with the
//! oldest record that is left, as Lambda does from a checkpoint that was trimmed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use chrono::{DateTime, Utc};
use futures::future::join_all;
use payments_model::sequence_number::SequenceNumber;
use serde_json::Value;

use crate::outcome::Delivery;
use crate::page::{Position, ShardId, SourceError, StreamShard};
use crate::record::Record;
use crate::settings::{SettingsError, StreamSettings};
use crate::shard::{Context, Cut, ShardReader};
use crate::source::Source;
use crate::window::{self, Invocation, Window};

/// A mapping.
pub struct StreamMapping {
    settings: StreamSettings,
    source: Source,
    shards: Vec<ShardReader>,
    /// The number of changes of a stream in memory when its list was read. Every shard here was on the list.
    listed: Option<u64>,
    cuts: Option<Mutex<Box<Cut>>>,
    discards: AtomicU64,
}

impl StreamMapping {
    /// Creates a mapping that has read nothing yet.
    pub fn new(settings: StreamSettings, source: impl Into<Source>) -> Result<Self, SettingsError> {
        settings.check()?;
        let (source, discards) = (source.into(), AtomicU64::new(0));
        Ok(Self { settings, source, shards: Vec::new(), listed: None, cuts: None, discards })
    }

    /// Returns the settings.
    pub fn settings(&self) -> &StreamSettings {
        &self.settings
    }

    /// Gives the cutting of batches to the caller: `cut` gets the number of records that a batch could have and returns
    /// the number that it has. With unlimited retries, a batch that failed is cut anew, as by a poller that took over.
    pub fn with_batch_cuts(mut self, cut: impl FnMut(usize) -> usize + Send + 'static) -> Self {
        self.cuts = Some(Mutex::new(Box::new(cut)));
        self
    }

    /// Steps every shard that can be read, once, with at most one invocation each. Returns nothing if there is nothing to
    /// do now.
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

    /// Steps every shard that can be read, all at once, with at most one invocation each, as Lambda
    /// does: the writes of the invocations overlap.
    pub async fn step_together<Answer: Future<Output = Result<Value, String>>>(
        &mut self,
        now: DateTime<Utc>,
        function: impl Fn(Value) -> Answer,
    ) -> Result<Vec<Delivery>, SourceError> {
        self.find_shards().await?;
        let ready = self.are_ready();
        let Self { settings, source, shards, cuts, discards, .. } = self;
        let steps = shards.iter_mut().zip(ready).filter(|(_, is_ready)| *is_ready).map(|(reader, _)| {
            let context = Context { settings: &*settings, source: &*source, cuts: cuts.as_ref(), discards, now };
            reader.step(context, &function)
        });
        Ok(join_all(steps).await.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// Steps one shard, for callers that interleave shards themselves.
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
            cuts: self.cuts.as_ref(),
            discards: &self.discards,
            now,
        };
        reader.step(context, function).await
    }

    /// Steps until a step finds nothing to do, at most `steps` times, and returns all deliveries. The limit ends endless
    /// retries of a poison record.
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

    /// Finds new shards, and returns the shards that can be read now: not finished, and without an unfinished parent.
    pub async fn ready(&mut self) -> Result<Vec<ShardId>, SourceError> {
        self.find_shards().await?;
        let shards = self.shards.iter().zip(self.are_ready()).filter(|(_, is_ready)| *is_ready);
        Ok(shards.map(|(shard, _)| shard.id.clone()).collect())
    }

    /// Finds new shards, and forgets those that the stream no longer has.
    async fn find_shards(&mut self) -> Result<(), SourceError> {
        if self.may_have_changed() {
            let changes = self.source.changes();
            let listed = self.source.shards().await?;
            self.forget_trimmed(&listed);
            let known: BTreeSet<ShardId> = self.shards.iter().map(|shard| shard.id.clone()).collect();
            let new = listed.iter().filter(|found| !known.contains(&found.id));
            self.shards.extend(new.cloned().map(ShardReader::new));
            self.listed = changes.filter(|_| self.shards.len() == listed.len());
        }
        Ok(())
    }

    /// Whether each shard can be read now.
    fn are_ready(&self) -> Vec<bool> {
        let unfinished: Vec<&ShardId> =
            self.shards.iter().filter(|shard| !shard.is_finished()).map(|shard| &shard.id).collect();
        let waits = |shard: &ShardReader| shard.parent.as_ref().is_some_and(|parent| unfinished.contains(&parent));
        self.shards.iter().map(|shard| !shard.is_finished() && !waits(shard)).collect()
    }

    /// Whether the stream may list other shards than it did: children appear when a shard ends, and a shard in memory can appear at any
    /// time.
    fn may_have_changed(&self) -> bool {
        if let changes @ Some(_) = self.source.changes() {
            return self.listed != changes;
        }
        let childless = |id: &ShardId| !self.shards.iter().any(|shard| shard.parent.as_ref() == Some(id));
        self.shards.is_empty() || self.shards.iter().any(|shard| shard.is_closed() && childless(&shard.id))
    }

    /// Forgets shards that the stream no longer lists, once nothing of them is left to deliver.
    fn forget_trimmed(&mut self, listed: &[StreamShard]) {
        let listed: BTreeSet<&ShardId> = listed.iter().map(|shard| &shard.id).collect();
        let is_listed = |shard: &ShardReader| listed.contains(&shard.id);
        self.shards.iter_mut().filter(|shard| !is_listed(shard)).for_each(ShardReader::end);
        self.shards.retain(|shard| is_listed(shard) || !shard.is_finished());
    }

    /// Continues after each shard's checkpoint, as a mapping that was disabled and is enabled: records that were read
    /// before, and not processed, are read again. Records that were trimmed meanwhile are lost.
    pub fn resume_from_checkpoints(&mut self) {
        self.shards.iter_mut().for_each(ShardReader::resume);
    }

    /// Returns each shard's checkpoint: the last record that was processed, filtered out or discarded, with every one before
    /// it.
    pub fn checkpoints(&self) -> BTreeMap<ShardId, Option<SequenceNumber>> {
        self.shards.iter().map(|shard| (shard.id.clone(), shard.checkpoint().cloned())).collect()
    }

    /// Forgets every checkpoint and every window's state. Like a mapping that is created again, it reads from the oldest
    /// records.
    pub fn restart_from_trim_horizon(&mut self) {
        self.shards.iter_mut().for_each(ShardReader::restart);
    }

    /// Delivers past records again, from one sequence number to another, both included. Lambda does so "in rare cases, such
    /// as error handling", where records "might be processed out of order". The responses change nothing, and a window's
    /// state is empty. Returns how many records were delivered.
    pub async fn redeliver<Answer: Future<Output = Result<Value, String>>>(
        &mut self,
        shard: &ShardId,
        from: &SequenceNumber,
        to: &SequenceNumber,
        function: impl Fn(Value) -> Answer,
    ) -> Result<usize, SourceError> {
        let mut records = self.source.read_all(shard, Position::At(from.clone())).await?;
        let filter = self.settings.filter.as_ref();
        let matches = |record: &Record| filter.is_none_or(|filter| filter.matches(record.event()));
        records.retain(|record| record.sequence_number() <= to && matches(record));
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
