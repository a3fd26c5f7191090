//! The stream of the hot table, read as the triggers read it.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_lambda_events::event::dynamodb::{Event, OperationType};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, TimeDelta, Utc};
use payments_delivery::{Cursor, Filter, Position, Source, SourceError, StreamMapping, StreamSettings};
use serde_json::{Value, json};

use super::*;
use crate::given::Given;

const NOW: i64 = 1_796_000_000;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(NOW, 0).unwrap()
}

async fn given() -> Given {
    Given::at(&now().to_rfc3339(), |_| {}).await.unwrap()
}

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

async fn put(given: &Given, pk: &str, status: &str) {
    let put = given.stack.client().put_item().table_name("payments").item("pk", text(pk)).item("sk", text("1"));
    let put = put.item("status", text(status)).item("version", AttributeValue::N("12345678901234567890".to_owned()));
    let put = put.item("blob", AttributeValue::B(Blob::new("foobar")));
    put.item("trail", AttributeValue::L(vec![text("a"), AttributeValue::Null(true)])).send().await.unwrap();
}

#[tokio::test]
async fn changes_of_an_item_arrive_as_lambda_events() {
    let given = given().await;
    let stream = given.stack.stream().await.unwrap();
    let arn = stream.arn().to_owned();
    put(&given, "ACCT#1", "SCHEDULED").await;
    given.pass(TimeDelta::seconds(60));
    put(&given, "ACCT#1", "PENDING").await;
    let delete = given.stack.client().delete_item().table_name("payments");
    delete.key("pk", text("ACCT#1")).key("sk", text("1")).send().await.unwrap();
    let events = RefCell::new(Vec::new());
    let function = async |event: Value| {
        events.borrow_mut().push(event);
        Ok(Value::Null)
    };
    let mut mapping = StreamMapping::new(StreamSettings::for_function("dispatch"), stream).unwrap();
    mapping.drain(now(), 9, function).await.unwrap();
    let [event] = events.take().try_into().unwrap();
    let read: Event = serde_json::from_value(event.clone()).unwrap();
    assert_eq!(read.records.len(), 3);
    assert_eq!(read.records[0].event_source_arn.as_deref(), Some(arn.as_str()));
    let names: Vec<&str> = read.records.iter().map(|record| record.event_name.as_str()).collect();
    let want = [OperationType::Insert, OperationType::Modify, OperationType::Remove].map(|name| name.to_string());
    assert_eq!(names, want);
    assert_eq!(read.records[0].change.approximate_creation_date_time, now());
    let mut changes: Vec<Value> = event["Records"].as_array().unwrap().iter().map(|r| r["dynamodb"].clone()).collect();
    for change in &mut changes {
        assert_eq!(change["SequenceNumber"].as_str().unwrap().len(), 21);
        assert!(change["SizeBytes"].as_i64().unwrap() > 0);
        change.as_object_mut().unwrap().retain(|name, _| !matches!(name.as_str(), "SequenceNumber" | "SizeBytes"));
    }
    let image = |status: &str| {
        json!({
            "pk": {"S": "ACCT#1"}, "sk": {"S": "1"}, "status": {"S": status},
            "version": {"N": "12345678901234567890"}, "blob": {"B": "Zm9vYmFy"},
            "trail": {"L": [{"S": "a"}, {"NULL": true}]},
        })
    };
    let keys = json!({"pk": {"S": "ACCT#1"}, "sk": {"S": "1"}});
    let view = "NEW_AND_OLD_IMAGES";
    let want = [
        json!({"ApproximateCreationDateTime": NOW, "Keys": keys, "StreamViewType": view,
            "NewImage": image("SCHEDULED")}),
        json!({"ApproximateCreationDateTime": NOW + 60, "Keys": keys, "StreamViewType": view,
            "OldImage": image("SCHEDULED"), "NewImage": image("PENDING")}),
        json!({"ApproximateCreationDateTime": NOW + 60, "Keys": keys, "StreamViewType": view,
            "OldImage": image("PENDING")}),
    ];
    assert_eq!(changes, want);
}

#[tokio::test]
async fn a_mapping_goes_on_filters_and_starts_again() {
    let given = given().await;
    let stream = given.stack.stream().await.unwrap();
    let pending = r#"{"dynamodb":{"NewImage":{"status":{"S":["PENDING"]}}}}"#;
    let settings = StreamSettings {
        batch_size: 2,
        filter: Some(Filter::parse(pending).unwrap()),
        ..StreamSettings::for_function("dispatch")
    };
    let mut mapping = StreamMapping::new(settings, stream).unwrap();
    let log = RefCell::new(Vec::new());
    let function = async |event: Value| {
        let keys =
            event["Records"].as_array().unwrap().iter().map(|record| record["dynamodb"]["Keys"]["pk"]["S"].clone());
        log.borrow_mut().push(keys.collect::<Vec<_>>());
        Ok(Value::Null)
    };
    assert_eq!(mapping.drain(now(), 9, function).await.unwrap(), []);
    for number in 0..3 {
        put(&given, &format!("ACCT#{number}"), "SCHEDULED").await;
        put(&given, &format!("ACCT#{number}"), "PENDING").await;
    }
    mapping.drain(now(), 9, function).await.unwrap();
    assert_eq!(log.take(), [vec![json!("ACCT#0"), json!("ACCT#1")], vec![json!("ACCT#2")]]);
    assert_eq!(mapping.drain(now(), 9, function).await.unwrap(), []);
    put(&given, "ACCT#3", "PENDING").await;
    mapping.drain(now(), 9, function).await.unwrap();
    assert_eq!(log.take(), [vec![json!("ACCT#3")]]);
    mapping.restart_from_trim_horizon();
    mapping.drain(now(), 9, function).await.unwrap();
    assert_eq!(log.take().concat(), ["ACCT#0", "ACCT#1", "ACCT#2", "ACCT#3"]);
}

#[tokio::test]
async fn a_stream_is_read_page_by_page_and_from_any_position() {
    let given = given().await;
    let stream = given.stack.stream().await.unwrap();
    for number in 0..12 {
        put(&given, &format!("ACCT#{number}"), "SCHEDULED").await;
    }
    let source = Source::from(stream);
    let [shard] = source.shards().await.unwrap().try_into().unwrap();
    let mut cursor = Cursor::at(Position::TrimHorizon);
    let mut read = Vec::new();
    for want in [5, 5, 2, 0] {
        let page = source.read(&shard.id, &mut cursor, 5).await.unwrap();
        assert_eq!((page.records.len(), page.closed), (want, false));
        read.extend(page.records);
    }
    for (position, from) in
        [(Position::At(read[4].sequence_number().clone()), 4), (Position::After(read[4].sequence_number().clone()), 5)]
    {
        assert_eq!(source.read_all(&shard.id, position).await.unwrap(), read[from..]);
    }
}

#[tokio::test]
async fn trimmed_records_are_passed_over() {
    let given = given().await;
    let trimmed = AtomicUsize::new(0);
    // The first seven: a page, and a part of the next one.
    let stream = given.stack.stream().await.unwrap().trimmed(move |_| trimmed.fetch_add(1, Ordering::Relaxed) < 7);
    for number in 0..12 {
        put(&given, &format!("ACCT#{number}"), "SCHEDULED").await;
    }
    let source = Source::from(stream);
    let [shard] = source.shards().await.unwrap().try_into().unwrap();
    let mut cursor = Cursor::at(Position::TrimHorizon);
    for want in [3, 2, 0] {
        assert_eq!(source.read(&shard.id, &mut cursor, 5).await.unwrap().records.len(), want);
    }
}

#[tokio::test]
async fn a_table_without_a_stream_is_an_error() {
    let Stack { environment, engine, .. } = given().await.stack;
    let stream = environment.stream_of(&environment.tables.history, engine.unwrap().direct().clone()).await;
    let error = stream.unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(SourceError::NoStream(table)) if *table == environment.tables.history));
}
