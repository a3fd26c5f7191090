//! The changes of the hot table, as they happen: for checkers, for reads of the past, and for streams.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, anyhow};
use chrono::{DateTime, Utc};
use payments_boot::Clock;
use payments_delivery::Record;
use serde_json::{Value, json};

use crate::engine::Direct;
use crate::layers::attributes::{Key, key_of};

/// The number of records that are read at once.
const PAGE: usize = 1_000;

/// Takes each record in its turn.
type Deal = dyn Fn(Record) -> Result<()> + Send + Sync;

/// One change of an item in the hot table.
#[derive(Debug, Clone)]
pub struct Change {
    /// The time of the change.
    pub at: DateTime<Utc>,
    /// The item's key.
    pub key: Key,
    /// The item before, if there was one.
    pub before: Option<Value>,
    /// The item after, if there is one.
    pub after: Option<Value>,
}

/// The changes so far, and the engine's stream from which they are read. Clones share them.
#[derive(Clone)]
pub struct Changes {
    engine: Direct,
    table: Arc<str>,
    clock: Clock,
    /// From where the stream is read on.
    iterator: Arc<Mutex<String>>,
    deal: Arc<Deal>,
    log: Arc<Mutex<Vec<Change>>>,
}

impl Changes {
    /// Follows the engine's stream, which has one shard for good, and deals its records on. It is read without an SDK: it is
    /// read after each write, and no function reads it.
    ///
    /// # Errors
    /// If the table has no stream.
    pub fn start(
        engine: &Direct,
        table: &str,
        clock: &Clock,
        deal: impl Fn(Record) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        let engine = engine.clone();
        let clock = clock.clone();
        let table = Arc::from(table);
        let streams = call(&engine, "ListStreams", &json!({ "TableName": table }))?;
        let arn = &streams["Streams"][0]["StreamArn"];
        let stream = call(&engine, "DescribeStream", &json!({ "StreamArn": arn }))?;
        let shard = &stream["StreamDescription"]["Shards"][0]["ShardId"];
        let from = json!({ "StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON" });
        let iterator = Arc::new(Mutex::new(iterator(&call(&engine, "GetShardIterator", &from)?["ShardIterator"])?));
        Ok(Self { engine, table, clock, iterator, deal: Arc::new(deal), log: Arc::default() })
    }

    /// Reads what has changed.
    ///
    /// # Errors
    /// If the stream cannot be read, or a record cannot be dealt.
    pub fn follow(&self) -> Result<()> {
        let mut from = self.iterator.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut page = call(&self.engine, "GetRecords", &json!({ "ShardIterator": *from, "Limit": PAGE }))?;
            *from = iterator(&page["NextShardIterator"])?;
            let records = page["Records"].as_array_mut().map(std::mem::take).unwrap_or_default();
            let count = records.len();
            for mut record in records {
                // Lambda's events have whole seconds.
                let created = &mut record["dynamodb"]["ApproximateCreationDateTime"];
                *created = created.to_string().split('.').next().and_then(|seconds| seconds.parse::<i64>().ok()).into();
                self.log().push(change_of(self.clock.instant(), &record));
                (self.deal)(Record::from_event(record)?)?;
            }
            if count < PAGE {
                return Ok(());
            }
        }
    }

    /// Returns the name of the hot table.
    pub(super) fn table(&self) -> &str {
        &self.table
    }

    /// Returns the changes since an instant, the newest first.
    #[must_use]
    pub fn since(&self, instant: DateTime<Utc>) -> Vec<Change> {
        self.log().iter().rev().take_while(|change| change.at > instant).cloned().collect()
    }

    /// Returns the changes from a place on, the oldest first.
    #[must_use]
    pub fn from(&self, place: usize) -> Vec<Change> {
        self.log()[place..].to_vec()
    }

    /// Returns the place of the last change of a key.
    pub fn last_of(&self, key: &Key) -> Option<usize> {
        self.log().iter().rposition(|change| change.key == *key)
    }

    /// Returns all changes, the oldest first. None can be added while they are held.
    pub fn log(&self) -> MutexGuard<'_, Vec<Change>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn call(engine: &Direct, operation: &str, input: &Value) -> Result<Value> {
    engine.call(operation, input).map_err(|error| anyhow!("{operation}: {error}"))
}

fn iterator(value: &Value) -> Result<String> {
    Ok(value.as_str().context("the engine's stream has a shard that does not end")?.to_owned())
}

fn change_of(at: DateTime<Utc>, event: &Value) -> Change {
    let image = |name: &str| event["dynamodb"].get(name).filter(|image| !image.is_null()).cloned();
    Change { at, key: key_of(&event["dynamodb"]["Keys"]), before: image("OldImage"), after: image("NewImage") }
}
