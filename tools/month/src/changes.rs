//! The changes of the hot table, as they happen: for the checker, for reads of the past, and for the modelled stream.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, Utc};
use payments_delivery::{Cursor, DynamoDbStream, Position, ShardId, Source};
use serde_json::Value;

use crate::attributes::{Key, key_of};
use crate::stream::Stream;

/// How many records are read at once.
const PAGE: usize = 1_000;

/// One change of an item in the hot table.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// When.
    pub(crate) at: DateTime<Utc>,
    /// The item's key.
    pub(crate) key: Key,
    /// The item before, if there was one.
    pub(crate) before: Option<Value>,
    /// The item after, if there is one.
    pub(crate) after: Option<Value>,
}

/// The changes so far. Clones share them.
#[derive(Clone)]
pub(crate) struct Changes {
    source: Source,
    shard: ShardId,
    cursor: Arc<tokio::sync::Mutex<Cursor>>,
    log: Arc<Mutex<Vec<Change>>>,
    stream: Stream,
}

impl Changes {
    /// Follows the engine's own stream, and deals it to a modelled one.
    pub(crate) async fn of(engine: DynamoDbStream, stream: Stream) -> Result<Self> {
        let source = Source::from(engine);
        let shards = source.shards().await?;
        ensure!(shards.len() == 1, "the engine's stream has one shard, not {}", shards.len());
        let shard = shards.into_iter().next().context("a shard")?.id;
        let cursor = Arc::new(tokio::sync::Mutex::new(Cursor::at(Position::TrimHorizon)));
        Ok(Self { source, shard, cursor, log: Arc::default(), stream })
    }

    /// Reads what has changed.
    pub(crate) async fn follow(&self, now: DateTime<Utc>) -> Result<()> {
        let mut cursor = self.cursor.lock().await;
        loop {
            let page = self.source.read(&self.shard, &mut cursor, PAGE).await?;
            let last = page.records.len() < PAGE;
            for record in page.records {
                self.log().push(change_of(now, record.event()));
                self.stream.deal(record)?;
            }
            if last {
                return Ok(());
            }
        }
    }

    /// Returns the changes of heads since an instant, the newest first.
    pub(crate) fn since(&self, instant: DateTime<Utc>) -> Vec<Change> {
        self.log().iter().rev().take_while(|change| change.at > instant).cloned().collect()
    }

    /// Returns the changes from a place on.
    pub(crate) fn from(&self, place: usize) -> Vec<Change> {
        self.log()[place..].to_vec()
    }

    /// Returns the place of the last change of a key.
    pub(crate) fn last_of(&self, key: &Key) -> Option<usize> {
        self.log().iter().rposition(|change| change.key == *key)
    }

    fn log(&self) -> MutexGuard<'_, Vec<Change>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn change_of(at: DateTime<Utc>, event: &Value) -> Change {
    let image = |name: &str| event["dynamodb"].get(name).filter(|image| !image.is_null()).cloned();
    Change { at, key: key_of(&event["dynamodb"]["Keys"]), before: image("OldImage"), after: image("NewImage") }
}
