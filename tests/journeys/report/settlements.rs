//! Settlements for the report, made through the functions, and the items that the report leaves.

use payments_tests::prelude::*;
use std::io::Read as _;

use chrono::DateTime;
use flate2::read::GzDecoder;
use futures::TryStreamExt as _;
use lambda_runtime::LambdaEvent;
use object_store::{ObjectStore, ObjectStoreExt as _};

/// A deadline that never comes.
const END_OF_TIME: &str = "2099-12-31T00:00:00Z";

/// The business day of these tests.
pub(super) const TODAY: &str = "2026-11-20";

/// The time at which payments are settled.
pub(super) const SETTLED_AT: &str = "2026-11-20T09:20:00Z";

/// A payment and its settlement: a transaction id, or a reason.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bill {
    pub(super) account: &'static str,
    pub(super) payee: &'static str,
    pub(super) amount: i64,
    pub(super) currency: &'static str,
    pub(super) outcome: Result<&'static str, &'static str>,
}

/// The request for a payment.
pub(super) fn body(bill: &Bill, date: &str) -> Value {
    let Bill { payee, amount, currency, .. } = bill;
    order_with(date, json!({ "payeeAccountId": payee, "amountMinor": amount, "currency": currency }))
}

/// Creates payments, claims them, and settles them at `at`. Returns their sorted ids.
pub(super) async fn settled(world: &World, at: &str, bills: &[Bill]) -> Result<Vec<String>> {
    world.set_clock(at)?;
    let (mut ids, mut results) = (Vec::new(), Vec::new());
    for (n, bill) in bills.iter().enumerate() {
        let body = body(bill, TODAY);
        let id = world.create(bill.account, &format!("{at}-{n}"), &body).await?;
        results.push(match bill.outcome {
            Ok(transaction) => processed(&id, &body, transaction),
            Err(reason) => failed(&id, &body, "AM04", reason),
        });
        ids.push(id);
    }
    swept_and_settled(world, ids, &results).await
}

/// The same for many payments of five payers to seven payees.
pub(super) async fn many(world: &World, at: &str, count: usize, tag: usize) -> Result<Vec<String>> {
    world.set_clock(at)?;
    let order =
        |n: usize| order_with(TODAY, json!({ "payeeAccountId": format!("payee-{}", n % 7), "amountMinor": n + 1 }));
    let entries = (0..count).map(|n| entry(&format!("payer-{}", n % 5), format!("{tag}-{n}"), order(n)));
    let ids = world.create_all(entries).await?;
    let results = ids.iter().enumerate().map(|(n, id)| processed(id, &order(n), &format!("TX-{id}")));
    let results: Vec<_> = results.collect();
    swept_and_settled(world, ids, &results).await
}

async fn swept_and_settled(world: &World, mut ids: Vec<String>, results: &[Value]) -> Result<Vec<String>> {
    world.sweep().await?;
    world.settle(results).await?;
    drop(world.outside.metrics.take());
    ids.sort();
    Ok(ids)
}

/// Invokes the report.
pub(super) async fn invoke(functions: &Functions, request_id: &str) -> Result<Value> {
    invoke_until(functions, request_id, END_OF_TIME).await
}

/// Invokes the report, which has time until a deadline.
pub(super) async fn invoke_until(functions: &Functions, request_id: &str, deadline: &str) -> Result<Value> {
    let deadline = DateTime::parse_from_rfc3339(deadline)?.timestamp_millis();
    let mut context = context(deadline.unsigned_abs());
    request_id.clone_into(&mut context.request_id);
    let request = report::Request { action: report::Action::Report };
    let report = functions.report.handle(LambdaEvent::new(request, context)).await;
    Ok(serde_json::to_value(report.map_err(anyhow::Error::from_boxed)?)?)
}

/// Invokes the report without faults.
pub(crate) async fn run(world: &World) -> Result<Value> {
    invoke(world.functions(), "a-good-day").await
}

/// All stored files by their names.
pub(crate) async fn files(world: &World) -> Result<BTreeMap<String, Vec<u8>>> {
    let store = &world.outside.reports;
    let names: Vec<_> = store.list(None).map_ok(|meta| meta.location).try_collect().await?;
    let mut files = BTreeMap::new();
    for name in names {
        files.insert(name.to_string(), store.get(&name).await?.bytes().await?.to_vec());
    }
    Ok(files)
}

/// The published files and their bytes.
pub(super) async fn published_files(world: &World) -> Result<BTreeMap<String, Vec<u8>>> {
    Ok(files(world).await?.into_iter().filter(|(name, _)| name.starts_with("reports/")).collect())
}

/// The published settlements, a text for each file, in the order of the files' names.
pub(crate) async fn published(world: &World) -> Result<Vec<String>> {
    let files = published_files(world).await?.into_iter();
    files.filter(|(name, _)| name.ends_with(".csv.gz")).map(|(_, bytes)| unzipped(&bytes)).collect()
}

/// Decompresses a file.
pub(super) fn unzipped(bytes: &[u8]) -> Result<String> {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text)?;
    Ok(text)
}

/// A column of a report.
pub(super) fn column(csv: &str, place: usize) -> Result<Vec<String>> {
    csv::Reader::from_reader(csv.as_bytes()).records().map(|row| Ok(row?[place].to_owned())).collect()
}

/// The payment ids of each report, sorted.
pub(super) async fn ids_by_report(world: &World) -> Result<Vec<Vec<String>>> {
    let sorted = |csv: &String| {
        let mut ids = column(csv, 0)?;
        ids.sort();
        Ok(ids)
    };
    published(world).await?.iter().map(sorted).collect()
}

/// The payment ids of all reports, sorted, with duplicates.
pub(super) async fn reported_ids(world: &World) -> Result<Vec<String>> {
    let mut ids = ids_by_report(world).await?.concat();
    ids.sort();
    Ok(ids)
}

/// The payment ids in the index.
pub(crate) async fn unreported(world: &World) -> Result<BTreeSet<String>> {
    let client = world.client().await;
    let mut ids = BTreeSet::new();
    for shard in 0..10 {
        let query = client.query().table_name(&world.environment.tables.payments).index_name("unreported");
        let query = query
            .key_condition_expression("#shard = :shard")
            .expression_attribute_names("#shard", "shard")
            .expression_attribute_values(":shard", number(shard));
        let items: Vec<Item> = query.into_paginator().items().send().collect::<Result<_, _>>().await?;
        let id = |item: &Item| item["sk"].as_s().ok().and_then(|sk| sk.split_once('#')).map(|(_, id)| id.to_owned());
        ids.extend(items.iter().filter_map(id));
    }
    Ok(ids)
}

/// The only line of metrics since the last time, without its time.
pub(super) fn measured(world: &World) -> Result<Value> {
    let lines = world.outside.metrics.take();
    let [line] = lines.as_slice() else { anyhow::bail!("{} lines of metrics", lines.len()) };
    let mut line: Value = serde_json::from_str(line)?;
    line.as_object_mut().context("an object")?.remove("_aws");
    Ok(line)
}
