//! A recount that shares no code with the functions: it compares the raw items of both tables with counters and log.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use chrono::TimeDelta;
use payments_lab::facts::heads::Tables;
use payments_lab::laws::consumer::Consumer;
use payments_lab::laws::counters::{self, Numbers};
use payments_machine::Handlers as _;
use payments_machine::invocation::context;
use payments_machine::layers::attributes::{Key, key_of};
use payments_model::UtcSecond;
use payments_store::{LogHead, LogPosition, LogRead, Store};
use payments_tests::tables::json_of_item;
use serde_json::{Value, json};

use crate::kit::fixture::Fixture;

/// The partition of the stream shards' checkpoints.
const CHECKPOINTS: &str = "CHECKPOINT#counts";

/// The counters of every date, and those of the checkpoints without a date.
pub(crate) async fn counters(fixture: &Fixture) -> Result<Numbers> {
    Ok(counters::shown(&items(fixture, &fixture.tables().payments).await?))
}

/// The checkpoints of all shards.
pub(crate) async fn checkpoints(fixture: &Fixture) -> Result<Vec<Value>> {
    fixture.items(&fixture.tables().payments, CHECKPOINTS).await
}

/// All items of a table.
pub(crate) async fn items(fixture: &Fixture, table: &str) -> Result<BTreeMap<Key, Value>> {
    let scan = fixture.client.scan().table_name(table).consistent_read(true).into_paginator().items().send();
    let items = scan.collect::<Result<Vec<_>, _>>().await?;
    Ok(items.iter().map(json_of_item).map(|item| (key_of(&item), item)).collect())
}

/// The differences of the counters and the log from a recount.
pub(crate) async fn differences(fixture: &Fixture) -> Result<Vec<String>> {
    let names = fixture.tables();
    let tables = Tables { hot: items(fixture, &names.payments).await?, history: items(fixture, &names.history).await? };
    let mut differences = counters::between(&counters::shown(&tables.hot), &counters::recounted(&tables));
    differences.extend(mislogged(fixture, &tables).await?);
    Ok(differences)
}

/// The differences of the log from the heads: the log has each version of a payment once, and in its order.
async fn mislogged(fixture: &Fixture, tables: &Tables) -> Result<Vec<String>> {
    let store = Store::new(fixture.client.clone(), fixture.tables().clone());
    let now = UtcSecond::new(fixture.time.now())?;
    let head = store.log_head().await?.unwrap_or_else(|| LogHead::first("", now));
    let mut consumer = Consumer::default();
    let mut wrong = Vec::new();
    let mut after = LogPosition::BEGINNING;
    loop {
        let read = store.log_page(&head, after, 1_000, 100, now).await?;
        let page = match read {
            LogRead::Page(page) => page,
            // Some tests last longer than events are kept, and see only the end of the log.
            LogRead::Expired(_) => return Ok(Vec::new()),
            LogRead::Beyond(end) => bail!("the log ends at {end}, before {after}"),
        };
        let events = page.entries.iter().map(|entry| serde_json::from_str(&entry.json));
        wrong.extend(consumer.take(json!({ "events": events.collect::<Result<Vec<Value>, _>>()? })));
        if page.is_end {
            wrong.extend(consumer.differences(tables, true));
            return Ok(wrong);
        }
        after = page.after;
    }
}

impl Fixture {
    /// Recounts a date.
    pub(crate) async fn recount(&self, day: &str) -> Result<Value> {
        let input = json!({ "action": "recount", "from": day, "to": day });
        let context = context(self.time.now() + TimeDelta::minutes(10));
        self.functions.scheduled("recount", input, context).await.map_err(anyhow::Error::msg)
    }
}
