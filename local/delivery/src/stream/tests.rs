//! Mappings on streams in memory: a story of hand-overs each.

mod batches;
mod failures;
mod faults;
mod shards;
mod windows;

use std::cell::RefCell;

use serde_json::json;

use super::*;
use crate::in_memory::InMemoryStream;
use crate::record::Record;

const ARN: &str = "arn:aws:dynamodb:local:000000000000:table/payments/stream/1";

/// Seconds after 2026-11-30T01:00:00Z.
fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_000_400 + seconds, 0).unwrap()
}

fn shard() -> ShardId {
    "shardId-1".into()
}

/// A record with this number, made `seconds` after the beginning, of a kind that filters can tell.
fn record(number: u64, seconds: i64, kind: &str) -> Record {
    let event = json!({
        "eventName": "MODIFY",
        "dynamodb": {
            "ApproximateCreationDateTime": at(seconds).timestamp(),
            "NewImage": {"kind": {"S": kind}},
            "SequenceNumber": number.to_string(),
        },
    });
    Record::of_event(event).unwrap()
}

/// A stream of one shard with the records 1 to `count`, made at second 0.
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
    StreamSettings::of("dispatch")
}

/// The sequence numbers of an event.
fn numbers(event: &Value) -> Vec<u64> {
    let number = |record: &Value| record["dynamodb"]["SequenceNumber"].as_str().unwrap().parse().unwrap();
    event["Records"].as_array().unwrap().iter().map(number).collect()
}

/// What a function was handed, invocation by invocation.
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

/// The answer that reports these records.
fn failed(numbers: impl IntoIterator<Item = u64>) -> Value {
    let failures = numbers.into_iter().map(|number| json!({"itemIdentifier": number.to_string()}));
    json!({"batchItemFailures": failures.collect::<Vec<_>>()})
}

fn outcomes(deliveries: Vec<Delivery>) -> Vec<Outcome> {
    deliveries.into_iter().map(|delivery| delivery.outcome).collect()
}

fn retrying(why: &str, remaining: usize) -> Outcome {
    Outcome::Retrying { why: why.to_owned(), remaining }
}

fn checkpoint(mapping: &StreamMapping) -> Option<SequenceNumber> {
    mapping.checkpoints()[&shard()].clone()
}

#[test]
fn settings_outside_aws_s_ranges_are_refused() {
    let seconds = TimeDelta::seconds;
    for (settings, want) in [
        (StreamSettings { batch_size: 0, ..settings() }, "BatchSize"),
        (StreamSettings { batch_size: 10_001, ..settings() }, "BatchSize"),
        (StreamSettings { maximum_batching_window: seconds(301), ..settings() }, "MaximumBatchingWindowInSeconds"),
        (StreamSettings { maximum_retry_attempts: Some(10_001), ..settings() }, "MaximumRetryAttempts"),
        (StreamSettings { maximum_record_age: Some(seconds(59)), ..settings() }, "MaximumRecordAgeInSeconds"),
        (StreamSettings { tumbling_window: Some(seconds(0)), ..settings() }, "TumblingWindowInSeconds"),
        (StreamSettings { tumbling_window: Some(seconds(901)), ..settings() }, "TumblingWindowInSeconds"),
    ] {
        assert_eq!(StreamMapping::new(settings, stream(0)).err(), Some(SettingsError(want)));
    }
}
