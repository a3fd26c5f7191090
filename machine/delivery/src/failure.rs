//! The failure record of a discarded batch, for the on-failure destination. It says where the records are.
//!
//! Source: *AWS Lambda Developer Guide*, "Retain discarded records for a DynamoDB event source in Lambda".

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use crate::page::ShardId;
use crate::record::Record;

/// The reason for which records are discarded: the function failed on the same batch more often than it is retried.
const CONDITION: &str = "RetryAttemptsExhausted";

/// A batch whose retries are exhausted.
pub(crate) struct Discarded<'a> {
    pub(crate) function: &'a str,
    pub(crate) arn: &'a str,
    pub(crate) shard: &'a ShardId,
    pub(crate) records: &'a [Record],
    /// The number of invocations with the batch.
    pub(crate) invocations: u32,
    /// Whether the last invocation ended in an error, not in a response that reports failures.
    pub(crate) function_error: bool,
}

impl Discarded<'_> {
    /// Returns the failure record, with the number `request`, if there are records.
    pub(crate) fn record(&self, request: u64, now: DateTime<Utc>) -> Option<Value> {
        let (first, last) = (self.records.first()?, self.records.last()?);
        let written = |at: DateTime<Utc>, precision| at.to_rfc3339_opts(precision, true);
        let function_error = self.function_error.then_some("Unhandled");
        Some(json!({
            "requestContext": {
                "requestId": format!("00000000-0000-4000-8000-{request:012x}"),
                "functionArn": format!("arn:aws:lambda:local:000000000000:function:{}", self.function),
                "condition": CONDITION,
                "approximateInvokeCount": self.invocations,
            },
            "responseContext": { "statusCode": 200, "executedVersion": "$LATEST", "functionError": function_error },
            "version": "1.0",
            "timestamp": written(now, SecondsFormat::Millis),
            "DDBStreamBatchInfo": {
                "shardId": self.shard.as_str(),
                "startSequenceNumber": first.sequence_number().as_str(),
                "endSequenceNumber": last.sequence_number().as_str(),
                "approximateArrivalOfFirstRecord": written(first.created_at(), SecondsFormat::Secs),
                "approximateArrivalOfLastRecord": written(last.created_at(), SecondsFormat::Secs),
                "batchSize": self.records.len(),
                "streamArn": self.arn,
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_record_has_the_shape_of_lambda_s() {
        let record = |number: &str, created: i64| {
            let change = json!({"SequenceNumber": number, "ApproximateCreationDateTime": created});
            Record::from_event(json!({"dynamodb": change})).unwrap()
        };
        let discarded = Discarded {
            function: "dispatch",
            arn: "arn:aws:dynamodb:local:000000000000:table/payments/stream/1",
            shard: &"shardId-1".into(),
            records: &[record("800000000003126276362", 1_796_000_000), record("800000000003126276370", 1_796_000_007)],
            invocations: 4,
            function_error: true,
        };
        let now = DateTime::from_timestamp_millis(1_796_000_030_717).unwrap();
        insta::assert_json_snapshot!(discarded.record(26, now).unwrap(), @r#"
        {
          "DDBStreamBatchInfo": {
            "approximateArrivalOfFirstRecord": "2026-11-30T00:53:20Z",
            "approximateArrivalOfLastRecord": "2026-11-30T00:53:27Z",
            "batchSize": 2,
            "endSequenceNumber": "800000000003126276370",
            "shardId": "shardId-1",
            "startSequenceNumber": "800000000003126276362",
            "streamArn": "arn:aws:dynamodb:local:000000000000:table/payments/stream/1"
          },
          "requestContext": {
            "approximateInvokeCount": 4,
            "condition": "RetryAttemptsExhausted",
            "functionArn": "arn:aws:lambda:local:000000000000:function:dispatch",
            "requestId": "00000000-0000-4000-8000-00000000001a"
          },
          "responseContext": {
            "executedVersion": "$LATEST",
            "functionError": "Unhandled",
            "statusCode": 200
          },
          "timestamp": "2026-11-30T00:53:50.717Z",
          "version": "1.0"
        }
        "#);
        let answered = Discarded { function_error: false, ..discarded };
        assert_eq!(answered.record(1, now).unwrap()["responseContext"]["functionError"], Value::Null);
        assert_eq!(Discarded { records: &[], ..answered }.record(1, now), None);
    }
}
