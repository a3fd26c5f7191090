//! Mappings on streams in memory, delivery by delivery.

mod batches;
mod failures;
mod faults;
mod shards;
mod trimming;
mod windows;

use std::cell::RefCell;

use serde_json::json;

use chrono::TimeDelta;
use payments_queue::Queue;

use super::*;
use crate::filter::Filter;
use crate::in_memory::InMemoryStream;
use crate::outcome::DeliveryOutcome;
use crate::record::Record;

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

/// The records that a function was invoked with, by invocation.
#[derive(Default)]
struct Log(RefCell<Vec<Vec<u64>>>);

impl Log {
    /// Notes an event and returns its numbers.
    fn note(&self, event: &Value) -> Vec<u64> {
        let numbers = numbers(event);
        self.0.borrow_mut().push(numbers.clone());
        numbers
    }

    fn take(&self) -> Vec<Vec<u64>> {
        self.0.take()
    }
}

/// Returns the response that reports these records.
fn failed(numbers: impl IntoIterator<Item = u64>) -> Value {
    let failures = numbers.into_iter().map(|number| json!({"itemIdentifier": number.to_string()}));
    json!({"batchItemFailures": failures.collect::<Vec<_>>()})
}

fn outcomes(deliveries: Vec<Delivery>) -> Vec<DeliveryOutcome> {
    deliveries.into_iter().map(|delivery| delivery.outcome).collect()
}

fn retrying(why: &str, remaining: usize) -> DeliveryOutcome {
    DeliveryOutcome::Retrying { why: why.to_owned(), remaining }
}

fn checkpoint(mapping: &StreamMapping) -> Option<SequenceNumber> {
    mapping.checkpoints()[&shard()].clone()
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
