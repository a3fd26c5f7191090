//! A recount that shares no code with the functions: it compares the raw items of both tables with the counters.

use std::collections::BTreeMap;

use anyhow::Result;
use payments_model::{BusinessDate, Status};
use payments_store::Store;
use payments_tests::tables::json_of_item;
use serde_json::Value;

use crate::attributes::text;
use crate::attributes::{Key, key_of};
use crate::fixture::Fixture;

/// The partition of the stream shards' checkpoints.
const CHECKPOINTS: &str = "CHECKPOINT#stream-aggregator";

/// Numbers by date and status, such as `2026-12-01 PENDING` or `2026-12-01 PENDING GBP`, without zeros.
pub(crate) type Numbers = BTreeMap<String, i128>;

/// Items by their keys.
pub(crate) type Items = BTreeMap<Key, Value>;

/// The right counters: each payment once, wherever its head is. A head that is in history alone is archived.
pub(crate) fn of(hot: &Items, history: &Items) -> Numbers {
    let mut numbers = Numbers::new();
    let moved = history.iter().filter(|(key, _)| !hot.contains_key(*key));
    for ((_, head), archived) in hot.iter().map(|it| (it, false)).chain(moved.map(|it| (it, true))) {
        let date = text(head, "due").split('#').nth(1).unwrap_or_default();
        let (status, currency) = (text(head, "status"), text(head, "currency"));
        let amount = head["amountMinor"]["N"].as_str().and_then(|amount| amount.parse().ok()).unwrap_or(0);
        let mut add = |what: String, number: i128| *numbers.entry(what).or_default() += number;
        add(format!("{date} {status}"), 1);
        add(format!("{date} {status} {currency}"), amount);
        add(format!("{date} archived"), i128::from(archived));
    }
    numbers.retain(|_, number| *number != 0);
    numbers
}

/// The counters of every date, and what the checkpoints count without a date.
pub(crate) async fn counters(fixture: &Fixture) -> Result<Numbers> {
    let mut numbers = Numbers::new();
    let store = Store::new(fixture.client.clone(), fixture.world.environment.tables.clone());
    for (date, counters) in store.counters(BusinessDate::MIN, BusinessDate::MAX).await? {
        let counts = counters.counts;
        let mut add = |what: &str, number: i128| *numbers.entry(format!("{date} {what}")).or_default() += number;
        Status::ALL.into_iter().for_each(|status| add(status.as_str(), counts.count(status).into()));
        counts.sums().for_each(|(currency, status, sum)| add(&format!("{status} {currency}"), sum));
        add("archived", counts.archived.into());
        add("unparsed", counts.unparsed.into());
    }
    for checkpoint in checkpoints(fixture).await? {
        *numbers.entry("? unparsed".to_owned()).or_default() +=
            i128::from(crate::attributes::number(&checkpoint, "unparsed"));
    }
    numbers.retain(|_, number| *number != 0);
    Ok(numbers)
}

/// The checkpoints of all shards.
pub(crate) async fn checkpoints(fixture: &Fixture) -> Result<Vec<Value>> {
    fixture.items(&fixture.world.environment.tables.payments, CHECKPOINTS).await
}

/// All heads of a table.
pub(crate) async fn heads(fixture: &Fixture, table: &str) -> Result<Items> {
    let scan = fixture.client.scan().table_name(table).consistent_read(true).into_paginator().items().send();
    let items = scan.collect::<Result<Vec<_>, _>>().await?;
    let heads = items.iter().map(json_of_item).filter(|item| text(item, "pk").starts_with("ACCT#"));
    Ok(heads.map(|head| (key_of(&head), head)).collect())
}

/// Where the counters differ from a recount.
pub(crate) async fn differences(fixture: &Fixture) -> Result<Vec<String>> {
    let tables = &fixture.world.environment.tables;
    let found = of(&heads(fixture, &tables.payments).await?, &heads(fixture, &tables.history).await?);
    Ok(between(&counters(fixture).await?, &found))
}

/// Where numbers differ.
pub(crate) fn between(counters: &Numbers, found: &Numbers) -> Vec<String> {
    let mut all: Vec<&String> = counters.keys().chain(found.keys()).collect();
    all.sort_unstable();
    all.dedup();
    let number = |numbers: &Numbers, what: &String| numbers.get(what).copied().unwrap_or(0);
    let differ = all.into_iter().filter(|what| counters.get(*what) != found.get(*what));
    differ.map(|what| format!("{what}: {} counted, {} found", number(counters, what), number(found, what))).collect()
}
