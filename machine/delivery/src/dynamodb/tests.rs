//! The embedded engine's streams, read over loopback as the local runner reads them.

use std::cell::RefCell;
use std::sync::Arc;

use aws_lambda_events::event::dynamodb::{Event, OperationType};
use aws_sdk_dynamodb::types as table;
use aws_sdk_dynamodbstreams::config::{BehaviorVersion, Credentials, Region};
use aws_smithy_http_client::Builder;
use chrono::DateTime;
use dynoxide::Database;
use dynoxide::storage_backend::ManualClock;
use serde_json::{Value, json};

use super::*;
use crate::filter::Filter;
use crate::settings::StreamSettings;
use crate::stream::StreamMapping;

const NOW: u64 = 1_796_000_000;

/// The engine with a table and its stream; it stops with the runtime of the test.
struct Engine {
    tables: aws_sdk_dynamodb::Client,
    streams: Client,
    clock: ManualClock,
}

impl Engine {
    async fn start() -> Self {
        let clock = ManualClock::new(NOW);
        let database = Database::memory_with_clock(Arc::new(clock.clone())).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(dynoxide::server::serve_with_shutdown(listener, database, std::future::pending()));
        let credentials = || Credentials::new("key", "secret", None, None, "test");
        let tables = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("local"))
            .credentials_provider(credentials())
            .endpoint_url(&endpoint)
            .http_client(Builder::new().build_http())
            .build();
        let streams = aws_sdk_dynamodbstreams::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("local"))
            .credentials_provider(credentials())
            .endpoint_url(&endpoint)
            .http_client(Builder::new().build_http())
            .build();
        let tables = aws_sdk_dynamodb::Client::from_conf(tables);
        Self { tables, streams: Client::from_conf(streams), clock }
    }

    async fn create_table(&self, stream: bool) {
        let attribute = |name: &str| {
            let kind = table::ScalarAttributeType::S;
            table::AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build().unwrap()
        };
        let key =
            |name: &str, kind| table::KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap();
        let view = table::StreamSpecification::builder()
            .stream_enabled(true)
            .stream_view_type(table::StreamViewType::NewAndOldImages);
        self.tables
            .create_table()
            .table_name("payments")
            .attribute_definitions(attribute("pk"))
            .attribute_definitions(attribute("sk"))
            .key_schema(key("pk", table::KeyType::Hash))
            .key_schema(key("sk", table::KeyType::Range))
            .billing_mode(table::BillingMode::PayPerRequest)
            .set_stream_specification(stream.then(|| view.build().unwrap()))
            .send()
            .await
            .unwrap();
    }

    async fn put(&self, pk: &str, status: &str) {
        let text = |text: &str| table::AttributeValue::S(text.to_owned());
        self.tables
            .put_item()
            .table_name("payments")
            .item("pk", text(pk))
            .item("sk", text("1"))
            .item("status", text(status))
            .item("version", table::AttributeValue::N("12345678901234567890".to_owned()))
            .item("blob", table::AttributeValue::B(aws_sdk_dynamodb::primitives::Blob::new("foobar")))
            .item("trail", table::AttributeValue::L(vec![text("a"), table::AttributeValue::Null(true)]))
            .send()
            .await
            .unwrap();
    }

    async fn delete(&self, pk: &str) {
        let text = |text: &str| table::AttributeValue::S(text.to_owned());
        let delete = self.tables.delete_item().table_name("payments").key("pk", text(pk)).key("sk", text("1"));
        delete.send().await.unwrap();
    }
}

fn now() -> DateTime<chrono::Utc> {
    DateTime::from_timestamp(NOW.try_into().unwrap(), 0).unwrap()
}

#[tokio::test]
async fn changes_of_an_item_arrive_as_lambda_events() {
    let engine = Engine::start().await;
    engine.create_table(true).await;
    let stream = DynamoDbStream::for_table(engine.streams.clone(), "payments").await.unwrap();
    let arn = stream.arn().to_owned();
    engine.put("ACCT#1", "SCHEDULED").await;
    engine.clock.set(NOW + 60);
    engine.put("ACCT#1", "PENDING").await;
    engine.delete("ACCT#1").await;
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
    let engine = Engine::start().await;
    engine.create_table(true).await;
    let stream = DynamoDbStream::for_table(engine.streams.clone(), "payments").await.unwrap();
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
        engine.put(&format!("ACCT#{number}"), "SCHEDULED").await;
        engine.put(&format!("ACCT#{number}"), "PENDING").await;
    }
    mapping.drain(now(), 9, function).await.unwrap();
    assert_eq!(log.take(), [vec![json!("ACCT#0"), json!("ACCT#1")], vec![json!("ACCT#2")]]);
    assert_eq!(mapping.drain(now(), 9, function).await.unwrap(), []);
    engine.put("ACCT#3", "PENDING").await;
    mapping.drain(now(), 9, function).await.unwrap();
    assert_eq!(log.take(), [vec![json!("ACCT#3")]]);
    mapping.restart_from_trim_horizon();
    mapping.drain(now(), 9, function).await.unwrap();
    assert_eq!(log.take().concat(), ["ACCT#0", "ACCT#1", "ACCT#2", "ACCT#3"]);
}

#[tokio::test]
async fn a_stream_is_read_page_by_page_and_from_any_position() {
    let engine = Engine::start().await;
    engine.create_table(true).await;
    let stream = DynamoDbStream::for_table(engine.streams.clone(), "payments").await.unwrap();
    for number in 0..12 {
        engine.put(&format!("ACCT#{number}"), "SCHEDULED").await;
    }
    let source = crate::source::Source::from(stream);
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
async fn a_table_without_a_stream_is_an_error() {
    let engine = Engine::start().await;
    engine.create_table(false).await;
    let stream = DynamoDbStream::for_table(engine.streams.clone(), "payments").await;
    assert!(matches!(stream, Err(SourceError::NoStream(table)) if table == "payments"));
}
