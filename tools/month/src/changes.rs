//! The changes of the hot table, as they happen: for the checker, for reads of the past, and for streams.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, Utc};
use payments_delivery::{Cursor, DynamoDbStream, Position, Record, ShardId, Source};
use serde_json::Value;

use crate::attributes::{Key, key_of};

/// How many records are read at once.
const PAGE: usize = 1_000;

/// Takes each record in its turn.
type Deal = dyn Fn(Record) -> Result<()> + Send + Sync;

/// One change of an item in the hot table.
#[derive(Debug, Clone)]
pub struct Change {
    /// When.
    pub at: DateTime<Utc>,
    /// The item's key.
    pub key: Key,
    /// The item before, if there was one.
    pub before: Option<Value>,
    /// The item after, if there is one.
    pub after: Option<Value>,
}

/// The changes so far. Clones share them.
#[derive(Clone)]
pub struct Changes {
    source: Source,
    shard: ShardId,
    cursor: Arc<tokio::sync::Mutex<Cursor>>,
    log: Arc<Mutex<Vec<Change>>>,
    deal: Arc<Deal>,
}

impl Changes {
    /// Follows the engine's own stream, and deals its records on.
    ///
    /// # Errors
    /// If the stream cannot be read, or has several shards.
    pub async fn of(
        engine: DynamoDbStream,
        deal: impl Fn(Record) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        let source = Source::from(engine);
        let shards = source.shards().await?;
        ensure!(shards.len() == 1, "the engine's stream has one shard, not {}", shards.len());
        let shard = shards.into_iter().next().context("a shard")?.id;
        let cursor = Arc::new(tokio::sync::Mutex::new(Cursor::at(Position::TrimHorizon)));
        Ok(Self { source, shard, cursor, log: Arc::default(), deal: Arc::new(deal) })
    }

    /// Reads what has changed.
    ///
    /// # Errors
    /// If the stream cannot be read, or a record cannot be dealt.
    pub async fn follow(&self, now: DateTime<Utc>) -> Result<()> {
        let mut cursor = self.cursor.lock().await;
        loop {
            let page = self.source.read(&self.shard, &mut cursor, PAGE).await?;
            let last = page.records.len() < PAGE;
            for record in page.records {
                self.log().push(change_of(now, record.event()));
                (self.deal)(record)?;
            }
            if last {
                return Ok(());
            }
        }
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
    pub(crate) fn last_of(&self, key: &Key) -> Option<usize> {
        self.log().iter().rposition(|change| change.key == *key)
    }

    /// Returns all changes, the oldest first. None can be added while they are held.
    pub fn log(&self) -> MutexGuard<'_, Vec<Change>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn change_of(at: DateTime<Utc>, event: &Value) -> Change {
    let image = |name: &str| event["dynamodb"].get(name).filter(|image| !image.is_null()).cloned();
    Change { at, key: key_of(&event["dynamodb"]["Keys"]), before: image("OldImage"), after: image("NewImage") }
}
