//! Mappings on streams in memory, delivery by delivery.

mod stories;
mod variations;

use std::cell::RefCell;

use serde_json::json;

use chrono::TimeDelta;
use payments_queue::Queue;

use super::*;
use crate::in_memory::InMemoryStream;
use crate::outcome::DeliveryOutcome;
use crate::record::Record;
use crate::window::MAX_STATE_BYTES;

const ARN: &str = "arn:aws:dynamodb:local:000000000000:table/payments/stream/1";

/// Seconds after 2026-11-30T01:00:00Z.
fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_000_400 + seconds, 0).unwrap()
}

fn shard() -> ShardId {
    "shardId-1".into()
}

/// Returns a record with this number, created at a second, of a kind that filters can test.
fn record(number: u64, seconds: i64, kind: &str) -> Record {
    let event = json!({
        "eventName": "MODIFY",
        "dynamodb": {
            "ApproximateCreationDateTime": at(seconds).timestamp(),
            "NewImage": {"kind": {"S": kind}},
            "SequenceNumber": number.to_string(),
        },
    });
    Record::from_event(event).unwrap()
}

/// Returns a stream of one shard with the records 1 to `count`, created at second 0.
fn stream(count: u64) -> InMemoryStream {
    let stream = InMemoryStream::new(ARN);
    stream.add_shard(shard(), None).unwrap();
    (1..=count).for_each(|number| stream.push(&shard(), record(number, 0, "head")).unwrap());
    stream
}

fn mapping(settings: StreamSettings, stream: &InMemoryStream) -> StreamMapping {
    StreamMapping::new(settings, stream.clone()).unwrap()
}

fn settings() -> StreamSettings {
    StreamSettings::for_function("dispatch")
}

/// Returns the sequence numbers of an event.
fn numbers(event: &Value) -> Vec<u64> {
    let number = |record: &Value| record["dynamodb"]["SequenceNumber"].as_str().unwrap().parse().unwrap();
    event["Records"].as_array().unwrap().iter().map(number).collect()
}

/// Returns the response that reports these records.
fn failed(numbers: impl IntoIterator<Item = u64>) -> Value {
    let failures = numbers.into_iter().map(|number| json!({"itemIdentifier": number.to_string()}));
    json!({"batchItemFailures": failures.collect::<Vec<_>>()})
}

#[test]
fn settings_outside_aws_s_ranges_are_errors() {
    let seconds = TimeDelta::seconds;
    for (settings, want) in [
        (StreamSettings { batch_size: 0, ..settings() }, "BatchSize"),
        (StreamSettings { batch_size: 10_001, ..settings() }, "BatchSize"),
        (StreamSettings { maximum_batching_window: seconds(301), ..settings() }, "MaximumBatchingWindowInSeconds"),
        (StreamSettings { maximum_retry_attempts: Some(10_001), ..settings() }, "MaximumRetryAttempts"),
        (StreamSettings { tumbling_window: Some(seconds(0)), ..settings() }, "TumblingWindowInSeconds"),
        (StreamSettings { tumbling_window: Some(seconds(901)), ..settings() }, "TumblingWindowInSeconds"),
    ] {
        assert_eq!(StreamMapping::new(settings, stream(0)).err(), Some(SettingsError(want)));
    }
}

#[tokio::test]
async fn a_payload_has_at_most_6_mb() {
    let stream = stream(0);
    for number in 1..=20 {
        stream.push(&shard(), record(number, 0, &"x".repeat(400 * 1024))).unwrap();
    }
    let done = mapping(settings(), &stream).drain(at(0), 9, async |_| Ok(Value::Null)).await.unwrap();
    // 6 MB / 400 KB = 15.4, with the frame of each record.
    assert_eq!(done.iter().map(|delivery| delivery.records).collect::<Vec<_>>(), [15, 5]);
}

#[tokio::test]
async fn a_state_beyond_1_mb_is_a_failure() {
    let settings = StreamSettings { tumbling_window: Some(TimeDelta::seconds(60)), ..settings() };
    let answer = json!({"state": "x".repeat(MAX_STATE_BYTES)});
    let step = mapping(settings, &stream(1)).step(at(1), async |_| Ok(answer.clone())).await.unwrap();
    assert!(matches!(&step[0].outcome, DeliveryOutcome::Retrying { why, .. } if why.contains("larger than 1 MB")));
}
