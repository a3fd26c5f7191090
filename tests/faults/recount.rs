//! A recount that shares no code with the functions: it compares the raw items of both tables with the counters.

use std::collections::BTreeMap;

use anyhow::Result;
use payments_month::attributes::{Key, key_of};
use payments_month::counters::{self, Numbers};
use payments_month::laws::Tables;
use payments_tests::tables::json_of_item;
use serde_json::Value;

use crate::fixture::Fixture;

/// The partition of the stream shards' checkpoints.
const CHECKPOINTS: &str = "CHECKPOINT#stream-aggregator";

/// The counters of every date, and what the checkpoints count without a date.
pub(crate) async fn counters(fixture: &Fixture) -> Result<Numbers> {
    Ok(counters::shown(&items(fixture, &fixture.world.environment.tables.payments).await?))
}

/// The checkpoints of all shards.
pub(crate) async fn checkpoints(fixture: &Fixture) -> Result<Vec<Value>> {
    fixture.items(&fixture.world.environment.tables.payments, CHECKPOINTS).await
}

/// All items of a table.
pub(crate) async fn items(fixture: &Fixture, table: &str) -> Result<BTreeMap<Key, Value>> {
    let scan = fixture.client.scan().table_name(table).consistent_read(true).into_paginator().items().send();
    let items = scan.collect::<Result<Vec<_>, _>>().await?;
    Ok(items.iter().map(json_of_item).map(|item| (key_of(&item), item)).collect())
}

/// Where the counters differ from a recount.
pub(crate) async fn differences(fixture: &Fixture) -> Result<Vec<String>> {
    let names = &fixture.world.environment.tables;
    let tables = Tables { hot: items(fixture, &names.payments).await?, history: items(fixture, &names.history).await? };
    Ok(counters::between(&counters::shown(&tables.hot), &counters::of(&tables)))
}
