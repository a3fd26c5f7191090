//! Settlements for the report, made through the functions, and what the report leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use anyhow::{Context as _, Result, ensure};
use aws_lambda_events::sqs::SqsEvent;
use chrono::DateTime;
use flate2::read::GzDecoder;
use futures::TryStreamExt as _;
use lambda_runtime::LambdaEvent;
use object_store::{ObjectStore, ObjectStoreExt as _};
use payments_bank::Functions;
use payments_store::Item;
use payments_tests::World;
use payments_tests::tables::{context, number};
use serde_json::{Value, json};

/// A deadline that never comes.
pub(crate) const END_OF_TIME: &str = "2099-12-31T00:00:00Z";

/// The business day of these tests.
const TODAY: &str = "2026-11-20";

/// A payment and its settlement: a transaction id, or a reason.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bill {
    pub(crate) account: &'static str,
    pub(crate) payee: &'static str,
    pub(crate) amount: i64,
    pub(crate) currency: &'static str,
    pub(crate) outcome: Result<&'static str, &'static str>,
}

/// The request for a payment.
pub(crate) fn body(bill: &Bill, date: &str) -> Value {
    json!({
        "payeeAccountId": bill.payee, "amountMinor": bill.amount, "currency": bill.currency, "scheduledFor": date,
    })
}

/// Creates payments, claims them, and settles them at `at`. Returns their sorted ids.
pub(crate) async fn settled(world: &World, at: &str, bills: &[Bill]) -> Result<Vec<String>> {
    world.set_clock(at)?;
    let mut results = Vec::new();
    for (n, bill) in bills.iter().enumerate() {
        let id = world.create(bill.account, &format!("{at}-{n}"), &body(bill, TODAY)).await?;
        results.push(match bill.outcome {
            Ok(transaction) => json!({
                "v": 1, "kind": "settlement", "paymentId": id, "amountMinor": bill.amount, "currency": bill.currency, "payeeAccountId": bill.payee,
                "status": "PROCESSED", "transactionId": transaction,
            }),
            Err(reason) => json!({
                "v": 1, "kind": "settlement", "paymentId": id, "amountMinor": bill.amount, "currency": bill.currency, "payeeAccountId": bill.payee,
                "status": "FAILED", "failureCode": "AM04", "failureReason": reason,
            }),
        });
    }
    world.sweep().await?;
    settle(world, &results).await?;
    Ok(sorted(results.iter().map(|result| result["paymentId"].as_str().unwrap_or_default().to_owned())))
}

/// The same for many payments of five payers to seven payees.
pub(crate) async fn many(world: &World, at: &str, count: usize, tag: usize) -> Result<Vec<String>> {
    world.set_clock(at)?;
    let entry = |n: usize| {
        json!({
            "accountId": format!("payer-{}", n % 5), "idempotencyKey": format!("{tag}-{n}"), "currency": "GBP",
            "payeeAccountId": format!("payee-{}", n % 7), "amountMinor": n + 1, "scheduledFor": TODAY,
        })
    };
    let ids = world.create_all((0..count).map(entry)).await?;
    world.sweep().await?;
    let result = |(n, id): (usize, &String)| {
        json!({
            "v": 1, "kind": "settlement", "paymentId": id, "amountMinor": n + 1, "currency": "GBP", "payeeAccountId": format!("payee-{}", n % 7),
            "status": "PROCESSED", "transactionId": format!("TX-{id}"),
        })
    };
    settle(world, &ids.iter().enumerate().map(result).collect::<Vec<_>>()).await?;
    Ok(sorted(ids))
}

fn sorted(ids: impl IntoIterator<Item = String>) -> Vec<String> {
    ids.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}

/// Delivers settlement results.
pub(crate) async fn settle(world: &World, results: &[Value]) -> Result<()> {
    for some in results.chunks(10) {
        let record = |(n, result): (usize, &Value)| json!({ "messageId": n.to_string(), "body": result.to_string() });
        let records: Vec<Value> = some.iter().enumerate().map(record).collect();
        let event: SqsEvent = serde_json::from_value(json!({ "Records": records }))?;
        let mut response = world.functions().settle_batch(event.clone()).await;
        if !response.batch_item_failures.is_empty() {
            // The queue delivers failed results again.
            response = world.functions().settle_batch(event).await;
        }
        ensure!(response.batch_item_failures.is_empty(), "{response:?}");
    }
    drop(world.outside.metrics.take());
    Ok(())
}

/// Invokes the report. Returns an error as text.
pub(crate) async fn invoke(functions: &Functions, request_id: &str, deadline: &str) -> Result<Value, String> {
    let deadline = DateTime::parse_from_rfc3339(deadline).map_err(|error| error.to_string())?.timestamp_millis();
    let mut context = context(deadline.unsigned_abs());
    request_id.clone_into(&mut context.request_id);
    let request = report::Request { action: report::Action::Report };
    let report = functions.report.handle(LambdaEvent::new(request, context)).await;
    serde_json::to_value(report.map_err(|error| error.to_string())?).map_err(|error| error.to_string())
}

/// Invokes the report without faults.
pub(crate) async fn run(world: &World) -> Result<Value> {
    invoke(world.functions(), "a-good-day", END_OF_TIME).await.map_err(anyhow::Error::msg)
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

/// The published settlements by file, ordered by name.
pub(crate) async fn published(world: &World) -> Result<Vec<(String, String)>> {
    let files = files(world).await?.into_iter();
    let csv = files.filter(|(name, _)| name.starts_with("reports/") && name.ends_with(".csv.gz"));
    let mut csv: Vec<_> = csv.map(|(name, bytes)| Ok((name, unzipped(&bytes)?))).collect::<Result<_>>()?;
    // Runs' numbers follow in the name if the spans are equal.
    csv.sort();
    Ok(csv)
}

/// Decompresses a file.
pub(crate) fn unzipped(bytes: &[u8]) -> Result<String> {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text)?;
    Ok(text)
}

/// The payment ids of a report.
pub(crate) fn rows(csv: &str) -> Result<Vec<String>> {
    csv::Reader::from_reader(csv.as_bytes()).records().map(|row| Ok(row?[0].to_owned())).collect()
}

/// The payment ids of all reports, sorted, with duplicates.
pub(crate) async fn reported_ids(world: &World) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for (_, csv) in published(world).await? {
        ids.extend(rows(&csv)?);
    }
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

/// The heads of the payers of [`many`], without one attribute.
pub(crate) async fn heads_without(world: &World, attribute: &str) -> Result<Vec<Item>> {
    let mut heads = Vec::new();
    for payer in 0..5 {
        heads.extend(world.heads(&format!("payer-{payer}")).await?);
    }
    heads.iter_mut().for_each(|head| drop(head.remove(attribute)));
    Ok(heads)
}

/// Makes an account's first head unreadable.
pub(crate) async fn damage(world: &World, account: &str) -> Result<()> {
    let mut head = world.heads(account).await?.into_iter().next().context("a head")?;
    head.insert("version".to_owned(), number(7));
    world.put_items(&world.environment.tables.payments, [head]).await
}

/// The only line of metrics since the last time, without its time.
pub(crate) fn measured(world: &World) -> Result<String> {
    let lines = world.outside.metrics.take();
    let [line] = lines.as_slice() else { anyhow::bail!("{} lines of metrics", lines.len()) };
    let mut line: Value = serde_json::from_str(line)?;
    line.as_object_mut().context("an object")?.remove("_aws");
    Ok(line.to_string())
}
