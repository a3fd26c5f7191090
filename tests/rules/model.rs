//! Compares `docs/model.json`, the tables for NoSQL Workbench, with the schema and with the items of a played day.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use lambda_runtime::LambdaEvent;
use payments_boot::Lookup;
use payments_store::Item;
use payments_store::schema::{self, Index, KeyAttribute, Table};
use payments_tests::given::{ACCOUNT, HORIZON_DAYS, prepare};
use payments_tests::tables::{NO_DEADLINE, context, json_of, text};
use payments_tests::{Ask, World};
use serde_json::{Value, from_value, json};

use crate::template::projection;

/// Set to anything, it writes the file instead of comparing it.
const UPDATE: &str = "UPDATE_MODEL";

/// The stream, stream shard and sequence number in place of an engine's own, which differ from run to run.
const STREAM: &str = "arn:aws:dynamodb:eu-west-2:123456789012:table/payments/stream/2090-06-15T00:00:00.000";
const STREAM_SHARD: &str = "shardId-00000003801168300000-0a1b2c3d";
const SEQUENCE_NUMBER: &str = "49590338271490256608559692538361571095921575989136588898";

#[tokio::test]
async fn the_model_has_the_schema_and_the_items_of_the_functions() -> Result<()> {
    let [payments, history, log] = sample().await?;
    let model = json!({
        "ModelName": "Scheduled payments",
        "ModelMetadata": {
            "Author": "",
            "DateCreated": "Nov 21, 2026, 12:00 AM",
            "DateLastModified": "Nov 21, 2026, 12:00 AM",
            "Description": "The tables of scheduled payments, with what one day leaves in them.",
            "AWSService": "Amazon DynamoDB",
            "Version": "3.0",
        },
        "DataModel": [
            table("payments", &schema::PAYMENTS, &payments)?,
            table("payment-history", &schema::HISTORY, &history)?,
            table("payments-log", &schema::LOG, &log)?,
        ],
    });
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/model.json");
    let text = serde_json::to_string_pretty(&model)? + "\n";
    if Lookup::environment().text(UPDATE).is_some() {
        std::fs::write(path, &text).context(path)?;
    }
    let written: Value = serde_json::from_str(&std::fs::read_to_string(path).context(path)?)?;
    assert_eq!(written, model, "docs/model.json is not what the code makes; {UPDATE}=1 writes it anew");
    Ok(())
}

/// The items of the tables after a day with payments in every status, its report, its archive and a late sweep. One
/// payment is settled and unreported, and one is due later, at another time than when it was created.
async fn sample() -> Result<[Vec<Item>; 3]> {
    let world = World::with(|environment| environment.horizon_days = HORIZON_DAYS).await?;
    prepare(&world, &["a-day"], "2090-06-15T00:05:00Z").await?;
    let functions = world.functions();
    world.set_clock("2090-06-15T09:00:00Z")?;
    functions.report.handle(asked(from_value(json!({"action": "report"}))?)).await.map_err(anyhow::Error::msg)?;
    world.set_clock("2090-06-16T01:30:00Z")?;
    functions.archive.handle(asked(from_value(json!({"action": "archive"}))?)).await.map_err(anyhow::Error::msg)?;
    functions.sweeper.handle(asked(from_value(json!({"action": "sweep"}))?)).await.map_err(anyhow::Error::msg)?;
    let heads = world.heads(ACCOUNT).await?;
    let [settled, ..] = heads.as_slice() else { anyhow::bail!("nothing is pending") };
    let payment_id = settled["sk"].as_s().ok().and_then(|sort| sort.rsplit('#').next()).context("no payment id")?;
    let amount: i64 = settled["amountMinor"].as_n().map_err(|_| anyhow::anyhow!("no amount"))?.parse()?;
    let result = json!({"v": 1, "kind": "settlement", "paymentId": payment_id, "amountMinor": amount, "currency": "GBP", "payeeAccountId": "GB94BARC10201530093459", "status": "PROCESSED", "transactionId": "TX-20900616-1"});
    let results = json!({"Records": [{"messageId": "result-1", "body": result.to_string()}]});
    functions.settle_batch(from_value(results)?).await;
    // An operator is too late to cancel it.
    let (at, action) = (world.now().to_string(), "5f1c1f6e-4f0e-5a37-9d0e-0a3f6b7c8d9e");
    let cancel = json!({ "step": "do", "payments": format!("{payment_id}@1"), "at": at, "id": action });
    let reply = world.send(Ask::post("/console/actions/cancel").json(&cancel)).await?;
    ensure!(reply.status == 200, "{reply}");
    let mut rent = json!({
        "payeeAccountId": "GB94BARC10201530093459", "amountMinor": 125_000, "currency": "GBP",
        "scheduledFor": "2090-07-15", "data": {"reference": "Rent July 2090"},
    });
    let reply = world.send(Ask::create(ACCOUNT, "rent-2090-07", &rent)).await?;
    ensure!(reply.status == 201, "{reply}");
    rent["scheduledFor"] = json!("2090-07-18");
    let reply = world.send(Ask::amend(ACCOUNT, reply.field("paymentId"), ("rent-2090-07-later", 1), &rent)).await?;
    ensure!(reply.status == 200, "{reply}");
    world.count_all().await?;
    let (client, tables) = (world.client().await, world.environment.tables.clone());
    let scan = async |name: &str| -> Result<Vec<Item>> {
        let mut items: Vec<Item> =
            client.scan().table_name(name).into_paginator().items().send().collect::<Result<_, _>>().await?;
        items.iter_mut().for_each(without_the_engines_own);
        items.sort_by_key(|item| [format!("{:?}", item["pk"]), format!("{:?}", item["sk"])]);
        Ok(items)
    };
    let all = [scan(&tables.payments).await?, scan(&tables.history).await?, scan(&tables.log).await?];
    Ok(all)
}

/// An invocation with time to spare.
fn asked<Request>(request: Request) -> LambdaEvent<Request> {
    let mut context = context(NO_DEADLINE);
    "a-request".clone_into(&mut context.request_id);
    LambdaEvent::new(request, context)
}

/// Removes what differs between two engines or runs: streams, stream shards, counters' lanes, sequence numbers, and the events' order.
fn without_the_engines_own(item: &mut Item) {
    if item["pk"].as_s().is_ok_and(|pk| pk.starts_with("COUNTS#")) {
        item.insert("pk".to_owned(), text("COUNTS#0"));
    }
    if item["pk"].as_s().is_ok_and(|pk| pk.starts_with("LOG#")) && item.contains_key("frame") {
        // Claims of several shards come in any order.
        item.insert("frame".to_owned(), AttributeValue::B(Blob::new("a zstd frame")));
    }
    if item.contains_key("source") {
        item.insert("source".to_owned(), text(STREAM));
    }
    if item.contains_key("sequenceNumber") {
        item.insert("sk".to_owned(), text(STREAM_SHARD));
        item.insert("sequenceNumber".to_owned(), text(SEQUENCE_NUMBER));
    }
}

/// A table as Workbench writes it.
fn table(name: &str, table: &Table, items: &[Item]) -> Result<Value> {
    let mut attributes: BTreeMap<&str, String> = BTreeMap::new();
    for index in table.indexes {
        let keys = [Some(index.partition), index.sort].into_iter().flatten();
        attributes.extend(keys.map(|key| (key.name(), key.scalar_type().to_string())));
    }
    let mut data = Vec::new();
    for item in items {
        let sorted: BTreeMap<_, _> = item.iter().collect();
        let mut row = serde_json::Map::new();
        for (attribute, value) in sorted {
            let value = json_of(value);
            let kind =
                value.as_object().and_then(|value| value.keys().next()).context("an attribute of no known type")?;
            let known = attributes.entry(attribute).or_insert_with(|| kind.clone());
            ensure!(known == kind, "{name}: {attribute} is {known} and {kind}; Workbench knows one type of each");
            row.insert(attribute.clone(), value);
        }
        data.push(Value::Object(row));
    }
    let keys = [schema::PARTITION.name(), schema::SORT.name()];
    let rest = attributes.into_iter().filter(|(name, _)| !keys.contains(name));
    Ok(json!({
        "TableName": name,
        "KeyAttributes": key_attributes(schema::PARTITION, Some(schema::SORT)),
        "NonKeyAttributes":
            rest.map(|(name, kind)| json!({"AttributeName": name, "AttributeType": kind})).collect::<Vec<_>>(),
        "GlobalSecondaryIndexes": table.indexes.iter().map(index).collect::<Vec<_>>(),
        "TableData": data,
        "DataAccess": {"MySql": {}},
        "BillingMode": "PAY_PER_REQUEST",
    }))
}

fn index(index: &Index) -> Value {
    let keys = key_attributes(index.partition, index.sort);
    json!({"IndexName": index.name, "KeyAttributes": keys, "Projection": projection(index)})
}

fn key_attributes(partition: KeyAttribute, sort: Option<KeyAttribute>) -> Value {
    let attribute = |it: KeyAttribute| json!({"AttributeName": it.name(), "AttributeType": it.scalar_type().as_str()});
    match sort {
        Some(sort) => json!({"PartitionKey": attribute(partition), "SortKey": attribute(sort)}),
        None => json!({"PartitionKey": attribute(partition)}),
    }
}
