//! Stale reads by so many changes, for every read at a chosen moment; a simulated month has them now and then.
//!
//! The embedded engine lacks them. The long-term table has no stream; a stale read of it finds nothing, which is as old
//! as an answer can be.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, ensure};
use fastrand::Rng;
use payments_delivery::{Cursor, DynamoDbStream, Position, ShardId, Source};
use payments_lab::facts::changes::Changes;
use payments_lab::facts::heads::is_of_head;
use payments_lab::facts::past::Past;
use payments_lab::random::Seed;
use payments_machine::SimulatedTime;
use payments_store::TableNames;
use serde_json::{Value, json};

/// How many records are read at once.
const PAGE: usize = 1_000;

/// How far reads lag.
#[derive(Debug, Clone)]
pub(crate) struct Lag {
    /// The most changes that reads of each index lag behind.
    pub(crate) indexes: BTreeMap<&'static str, usize>,
    /// The most changes that reads without consistency lag behind.
    pub(crate) reads: usize,
    /// Whether such reads of the long-term table lag too.
    pub(crate) details_too: bool,
    /// Draws each lag; without it, each is the longest.
    pub(crate) random: Option<Rng>,
}

impl Lag {
    /// No read lags.
    pub(crate) fn none() -> Self {
        Self { indexes: BTreeMap::new(), reads: 0, details_too: false, random: None }
    }

    /// Every index and every inconsistent read lags behind by up to `most` changes.
    pub(crate) fn up_to(most: usize, seed: u64) -> Self {
        let indexes = [("due", most), ("transaction", most), ("unreported", most)].into();
        Self { indexes, reads: most, details_too: true, random: Some(Seed(seed).source("lag")) }
    }

    /// Every read that can lag does, by this many changes.
    pub(crate) fn always(changes: usize) -> Self {
        Self { random: None, ..Self::up_to(changes, 0) }
    }

    /// Draws how many changes a read lags behind.
    fn draw(&mut self, operation: &str, input: &Value) -> usize {
        let most = match (operation, input["IndexName"].as_str()) {
            ("Query", Some(index)) => self.indexes.get(index).copied().unwrap_or(0),
            ("Query" | "GetItem", None) if input["ConsistentRead"] != true => self.reads,
            ("BatchGetItem", _) => self.reads,
            _ => 0,
        };
        match &mut self.random {
            Some(random) if most > 0 => random.usize(..=most),
            _ => most,
        }
    }
}

/// The changes of the hot table, and how far reads lag behind them. Clones share both.
#[derive(Clone)]
pub(crate) struct Staleness {
    tables: TableNames,
    time: SimulatedTime,
    lag: Arc<Mutex<Lag>>,
    changes: Changes,
    stream: Source,
    shard: ShardId,
    cursor: Arc<tokio::sync::Mutex<Cursor>>,
}

impl Staleness {
    /// Follows the changes of a table by its stream.
    pub(crate) async fn of(stream: DynamoDbStream, tables: TableNames, time: SimulatedTime) -> Result<Self> {
        let stream = Source::from(stream);
        let mut shards = stream.shards().await?;
        ensure!(shards.len() == 1, "the engine's stream has one shard, not {}", shards.len());
        let (shard, cursor) = (shards.remove(0).id, Cursor::at(Position::TrimHorizon));
        let lag = Arc::new(Mutex::new(Lag::none()));
        let cursor = Arc::new(tokio::sync::Mutex::new(cursor));
        Ok(Self { tables, time, lag, changes: Changes::default(), stream, shard, cursor })
    }

    /// Lets reads lag from now on.
    pub(crate) fn set(&self, lag: Lag) {
        *self.lag() = lag;
    }

    fn lag(&self) -> MutexGuard<'_, Lag> {
        self.lag.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every change in the hot table so far.
    pub(crate) async fn changes(&self) -> Result<&Changes> {
        let mut cursor = self.cursor.lock().await;
        loop {
            let page = self.stream.read(&self.shard, &mut cursor, PAGE).await?;
            page.records.iter().for_each(|record| self.changes.add(self.time.now(), record.event()));
            if page.records.len() < PAGE {
                return Ok(&self.changes);
            }
        }
    }

    /// Makes an answer as old as its read lags.
    pub(crate) async fn age(&self, operation: &str, input: &Value, answer: &mut Value) -> Result<()> {
        let (lagging, details_too) = {
            let mut lag = self.lag();
            (lag.draw(operation, input), lag.details_too)
        };
        if lagging == 0 {
            return Ok(());
        }
        let past = {
            let changes = self.changes().await?.log();
            let of_heads = changes.iter().rev().filter(|change| is_of_head(&change.key.0));
            Past::before(of_heads.take(lagging).cloned())
        };
        let is_hot = input["TableName"] == self.tables.payments.as_str();
        match operation {
            "BatchGetItem" => self.age_batch(&past, details_too, input, answer),
            "Query" if is_hot => past.age_query(input, answer),
            "GetItem" if is_hot => past.age_get(input, answer),
            "Query" if details_too && input.get("IndexName").is_none() => {
                (answer["Count"], answer["Items"]) = (json!(0), json!([]));
            }
            "GetItem" if details_too => drop(answer.as_object_mut().and_then(|fields| fields.remove("Item"))),
            _ => {}
        }
        Ok(())
    }

    fn age_batch(&self, past: &Past, details_too: bool, input: &Value, answer: &mut Value) {
        for (table, asked) in input["RequestItems"].as_object().into_iter().flatten() {
            let Some(items) = answer["Responses"][table].as_array_mut() else { continue };
            if asked["ConsistentRead"] == true {
                continue;
            }
            if *table == self.tables.payments {
                past.age_batch(asked, items);
            } else if details_too {
                items.clear();
            }
        }
    }
}
