//! Stale reads, which the embedded engine lacks: index reads lag, and so do reads that do not ask for consistency.
//!
//! The past comes from the table's own stream: an answer is made older by undoing the last changes of its items. The
//! long-term table has no stream; a stale read of it finds nothing, which is as old as an answer can be.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, ensure};
use payments_delivery::{Cursor, DynamoDbStream, Position, ShardId, Source};
use payments_store::TableNames;
use serde_json::{Value, json};

use crate::attributes::{Key, key_of};

use fastrand::Rng;

/// How many records are read at once.
const PAGE: usize = 1_000;

/// One change of a head in the hot table.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) key: Key,
    pub(crate) before: Option<Value>,
    pub(crate) after: Option<Value>,
}

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
        let (indexes, random) =
            ([("due", most), ("transaction", most), ("unreported", most)].into(), Some(Rng::with_seed(seed)));
        Self { indexes, reads: most, details_too: true, random }
    }

    /// Every read that can lag does, by this many changes.
    pub(crate) fn always(changes: usize) -> Self {
        Self { random: None, ..Self::up_to(changes, 0) }
    }

    fn throw(&mut self, most: usize) -> usize {
        self.random.as_mut().map_or(most, |random| random.usize(..=most))
    }
}

/// The changes of the hot table, and how far reads lag behind them. Clones share both.
#[derive(Clone)]
pub(crate) struct Staleness {
    tables: TableNames,
    lag: Arc<Mutex<Lag>>,
    log: Arc<tokio::sync::Mutex<Log>>,
}

struct Log {
    source: Source,
    shard: ShardId,
    cursor: Cursor,
    changes: Arc<Vec<Change>>,
}

impl Staleness {
    /// Reads the changes of a table from its stream.
    pub(crate) async fn of(stream: DynamoDbStream, tables: TableNames) -> Result<Self> {
        let source = Source::from(stream);
        let shards = source.shards().await?;
        ensure!(shards.len() == 1, "the engine's stream has one shard, not {}", shards.len());
        let shard = shards.into_iter().next().context("a shard")?.id;
        let log = Log { source, shard, cursor: Cursor::at(Position::TrimHorizon), changes: Arc::default() };
        let lag = Arc::new(Mutex::new(Lag::none()));
        Ok(Self { tables, lag, log: Arc::new(tokio::sync::Mutex::new(log)) })
    }

    /// Lets reads lag from now on.
    pub(crate) fn set(&self, lag: Lag) {
        *self.lag() = lag;
    }

    fn lag(&self) -> MutexGuard<'_, Lag> {
        self.lag.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every change of a head in the hot table so far, oldest first.
    pub(crate) async fn changes(&self) -> Result<Arc<Vec<Change>>> {
        let mut log = self.log.lock().await;
        loop {
            let Log { source, shard, cursor, changes } = &mut *log;
            let page = source.read(shard, cursor, PAGE).await?;
            if page.records.is_empty() {
                return Ok(Arc::clone(changes));
            }
            let of_heads = page.records.iter().map(|record| change_of(record.event()));
            Arc::make_mut(changes).extend(of_heads.filter(|change| change.key.0.starts_with("ACCT#")));
        }
    }

    /// Makes an answer as old as its read lags.
    pub(crate) async fn age(&self, operation: &str, input: &Value, reply: &mut Value) -> Result<()> {
        let most = {
            let lag = self.lag();
            match (operation, input["IndexName"].as_str()) {
                ("Query", Some(index)) => lag.indexes.get(index).copied().unwrap_or(0),
                ("Query" | "GetItem", None) if input["ConsistentRead"] != true => lag.reads,
                ("BatchGetItem", _) => lag.reads,
                _ => 0,
            }
        };
        let lagging = if most == 0 { 0 } else { self.lag().throw(most) };
        if lagging == 0 {
            return Ok(());
        }
        let changes = self.changes().await?;
        let past = Past::before_last(lagging, &changes);
        match operation {
            "Query" => self.age_query(&past, input, reply),
            "GetItem" => self.age_get(&past, input, reply),
            _ => self.age_batch(&past, input, reply),
        }
        Ok(())
    }

    fn age_query(&self, past: &Past, input: &Value, reply: &mut Value) {
        let Some(items) = reply["Items"].as_array_mut() else { return };
        if input["TableName"] != self.tables.payments.as_str() {
            if input.get("IndexName").is_none() && self.lag().details_too {
                items.clear();
            }
            return;
        }
        items.retain(|item| !past.0.contains_key(&key_of(item)));
        let then = past.0.values().flatten().filter(|item| selects(input, item)).cloned();
        items.extend(then);
        let sort = match input["IndexName"].as_str() {
            Some("unreported") => "unreported",
            Some(_) => "due",
            None => "sk",
        };
        items.sort_by_key(|item| item[sort]["S"].as_str().unwrap_or_default().to_owned());
        reply["Count"] = json!(items_in(reply));
    }

    fn age_get(&self, past: &Past, input: &Value, reply: &mut Value) {
        let then = match past.0.get(&key_of(&input["Key"])) {
            _ if input["TableName"] == self.tables.history.as_str() => {
                if !self.lag().details_too {
                    return;
                }
                None
            }
            Some(then) => then.clone(),
            None => return,
        };
        if let Some(fields) = reply.as_object_mut() {
            match then {
                Some(item) => fields.insert("Item".to_owned(), item),
                None => fields.remove("Item"),
            };
        }
    }

    fn age_batch(&self, past: &Past, input: &Value, reply: &mut Value) {
        for (table, asked) in input["RequestItems"].as_object().into_iter().flatten() {
            let Some(items) = reply["Responses"][table].as_array_mut() else { continue };
            if asked["ConsistentRead"] == true {
                continue;
            }
            if *table == self.tables.history {
                if self.lag().details_too {
                    items.clear();
                }
                continue;
            }
            items.retain(|item| !past.0.contains_key(&key_of(item)));
            let keys: Vec<Key> = asked["Keys"].as_array().into_iter().flatten().map(key_of).collect();
            items.extend(keys.iter().filter_map(|key| past.0.get(key).cloned().flatten()));
        }
    }
}

/// The items that changed lately, as they were before.
struct Past(BTreeMap<Key, Option<Value>>);

impl Past {
    fn before_last(lagging: usize, changes: &[Change]) -> Self {
        let last = &changes[changes.len().saturating_sub(lagging)..];
        Self(last.iter().rev().map(|change| (change.key.clone(), change.before.clone())).collect())
    }
}

/// Whether a query selects an item. Queries have an equality on the partition and bounds on the sort key, or neither.
fn selects(input: &Value, item: &Value) -> bool {
    let values = &input["ExpressionAttributeValues"];
    let text = |name: &str| values[name]["S"].as_str().unwrap_or_default();
    let within = |sort: &str| item[sort]["S"].as_str().is_some_and(|key| (text(":from")..=text(":to")).contains(&key));
    match input["IndexName"].as_str() {
        Some("due") => item["shard"] == values[":shard"] && within("due"),
        Some("transaction") => item["transactionId"] == values[":id"],
        // Cases have few payments, so there is one page.
        Some("unreported") => item["shard"] == values[":shard"] && item.get("unreported").is_some(),
        _ => item["pk"] == values[":pk"] && within("sk"),
    }
}

fn items_in(reply: &Value) -> usize {
    reply["Items"].as_array().map_or(0, Vec::len)
}

fn change_of(event: &Value) -> Change {
    let image = |name: &str| event["dynamodb"].get(name).filter(|image| !image.is_null()).cloned();
    Change { key: key_of(&event["dynamodb"]["Keys"]), before: image("OldImage"), after: image("NewImage") }
}
