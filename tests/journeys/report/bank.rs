//! Settlements for the report, made through the bank's own functions, and what the report left.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use anyhow::{Context as _, Result, ensure};
use aws_lambda_events::sqs::SqsEvent;
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::DateTime;
use daily_due_sweeper::Action;
use flate2::read::GzDecoder;
use futures::TryStreamExt as _;
use lambda_runtime::{Context, LambdaEvent};
use object_store::{ObjectStore, ObjectStoreExt as _};
use payments_local::Functions;
use payments_store::Item;
use payments_tests::{Ask, World};
use serde_json::{Value, json};

/// A deadline that never comes.
pub(crate) const END_OF_TIME: &str = "2099-12-31T00:00:00Z";

/// The business day of these tests.
const TODAY: &str = "2026-11-20";

/// A payment, and how it ends: with a transaction id, or for a reason.
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

/// Puts bills in, sweeps them, and settles them at `at`; their ids in order.
pub(crate) async fn settled(world: &World, at: &str, bills: &[Bill]) -> Result<Vec<String>> {
    world.set_clock(at)?;
    let mut results = Vec::new();
    for (n, bill) in bills.iter().enumerate() {
        let put = world.send(Ask::create(bill.account, &format!("{at}-{n}"), &body(bill, TODAY))).await?;
        ensure!(put.status == 201, "{put}");
        let id = put.field("paymentId").to_owned();
        results.push(match bill.outcome {
            Ok(transaction) => json!({ "paymentId": id, "outcome": "PROCESSED", "transactionId": transaction }),
            Err(reason) => json!({ "paymentId": id, "outcome": "FAILED", "reason": reason }),
        });
    }
    sweep(world).await?;
    settle(world, &results).await?;
    Ok(sorted(results.iter().map(|result| result["paymentId"].as_str().unwrap_or_default().to_owned())))
}

/// The same with many payments of five payers to seven payees.
pub(crate) async fn many(world: &World, at: &str, count: usize, tag: usize) -> Result<Vec<String>> {
    world.set_clock(at)?;
    let entry = |n: usize| {
        json!({
            "accountId": format!("payer-{}", n % 5), "idempotencyKey": format!("{tag}-{n}"), "currency": "GBP",
            "payeeAccountId": format!("payee-{}", n % 7), "amountMinor": n + 1, "scheduledFor": TODAY,
        })
    };
    let mut ids = Vec::new();
    for batch in (0..count).collect::<Vec<_>>().chunks(100) {
        let entries: Vec<Value> = batch.iter().map(|n| entry(*n)).collect();
        let reply = world.send(Ask::post("/payment-batches").json(&json!({ "payments": entries }))).await?;
        for result in reply.body["results"].as_array().with_context(|| reply.to_string())? {
            ids.push(result["payment"]["paymentId"].as_str().with_context(|| result.to_string())?.to_owned());
        }
    }
    sweep(world).await?;
    let result = |id: &String| json!({ "paymentId": id, "outcome": "PROCESSED", "transactionId": format!("TX-{id}") });
    settle(world, &ids.iter().map(result).collect::<Vec<_>>()).await?;
    Ok(sorted(ids))
}

fn sorted(ids: impl IntoIterator<Item = String>) -> Vec<String> {
    ids.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}

/// One tick of the sweeper.
pub(crate) async fn sweep(world: &World) -> Result<()> {
    let request = daily_due_sweeper::Request { action: Action::Sweep };
    let swept = world.functions().sweeper.handle(LambdaEvent::new(request, context("sweep", END_OF_TIME)?)).await;
    swept.map(drop).map_err(anyhow::Error::from_boxed)
}

/// Delivers results of the transaction service.
pub(crate) async fn settle(world: &World, results: &[Value]) -> Result<()> {
    for some in results.chunks(10) {
        let record = |(n, result): (usize, &Value)| json!({ "messageId": n.to_string(), "body": result.to_string() });
        let records: Vec<Value> = some.iter().enumerate().map(record).collect();
        let event: SqsEvent = serde_json::from_value(json!({ "Records": records }))?;
        let mut response = world.functions().settle.handle(event.clone()).await;
        if !response.batch_item_failures.is_empty() {
            // The queue brings again what an engine had no time for.
            response = world.functions().settle.handle(event).await;
        }
        ensure!(response.batch_item_failures.is_empty(), "{response:?}");
    }
    drop(world.outside.metrics.take());
    Ok(())
}

/// An invocation's context.
fn context(request_id: &str, deadline: &str) -> Result<Context> {
    let mut context = Context::default();
    request_id.clone_into(&mut context.request_id);
    context.deadline = u64::try_from(DateTime::parse_from_rfc3339(deadline)?.timestamp_millis())?;
    Ok(context)
}

/// Invokes the report; an error as its text.
pub(crate) async fn invoke(functions: &Functions, request_id: &str, deadline: &str) -> Result<Value, String> {
    let request = report::Request { action: report::Action::Report };
    let context = context(request_id, deadline).map_err(|error| error.to_string())?;
    let report = functions.report.handle(LambdaEvent::new(request, context)).await;
    serde_json::to_value(report.map_err(|error| error.to_string())?).map_err(|error| error.to_string())
}

/// Invokes the report on a good day.
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

/// The published settlements, by file in the order of the names.
pub(crate) async fn published(world: &World) -> Result<Vec<(String, String)>> {
    let files = files(world).await?.into_iter();
    let csv = files.filter(|(name, _)| name.starts_with("reports/") && name.ends_with(".csv.gz"));
    let mut csv: Vec<_> = csv.map(|(name, bytes)| Ok((name, unzipped(&bytes)?))).collect::<Result<_>>()?;
    // Where the spans are the same, the runs' numbers are behind them.
    csv.sort();
    Ok(csv)
}

/// What gzip had made small.
pub(crate) fn unzipped(bytes: &[u8]) -> Result<String> {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text)?;
    Ok(text)
}

/// The payment ids of a report.
pub(crate) fn rows(csv: &str) -> Result<Vec<String>> {
    csv::Reader::from_reader(csv.as_bytes()).records().map(|row| Ok(row?[0].to_owned())).collect()
}

/// The payment ids of all reports, sorted, as often as they are there.
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
            .expression_attribute_values(":shard", AttributeValue::N(shard.to_string()));
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

/// Makes an account's first head one that cannot be read.
pub(crate) async fn damage(world: &World, account: &str) -> Result<()> {
    let mut head = world.heads(account).await?.into_iter().next().context("a head")?;
    head.insert("version".to_owned(), AttributeValue::N("7".to_owned()));
    let put = world.client().await.put_item().table_name(&world.environment.tables.payments).set_item(Some(head));
    put.send().await?;
    Ok(())
}

/// The one line of metrics since the last time, without its time.
pub(crate) fn measured(world: &World) -> Result<String> {
    let lines = world.outside.metrics.take();
    let [line] = lines.as_slice() else { anyhow::bail!("{} lines of metrics", lines.len()) };
    let mut line: Value = serde_json::from_str(line)?;
    line.as_object_mut().context("an object")?.remove("_aws");
    Ok(line.to_string())
}
