//! A stream record as a function sees it: one element of `Records`.
//!
//! The JSON is that of Lambda (*AWS Lambda Developer Guide*, "Using AWS Lambda with Amazon DynamoDB"). An image that a
//! change does not have is absent and not empty, which the types of `aws_lambda_events` cannot express.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

use payments_model::sequence_number::{SequenceNumber, SequenceNumberError};

/// A stream record. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    sequence_number: SequenceNumber,
    created_at: DateTime<Utc>,
    event: Arc<Value>,
    bytes: usize,
}

/// The fault of a JSON value that is not a stream record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A field that delivery relies on is missing or of another type.
    #[error("not a stream record")]
    Json(#[from] serde_json::Error),
    /// `dynamodb.SequenceNumber` is invalid.
    #[error("dynamodb.SequenceNumber is invalid")]
    SequenceNumber(#[from] SequenceNumberError),
    /// `dynamodb.ApproximateCreationDateTime` is outside the range of dates.
    #[error("dynamodb.ApproximateCreationDateTime {0} is not a valid time")]
    Created(i64),
}

#[derive(Deserialize)]
struct Envelope {
    dynamodb: Change,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Change {
    sequence_number: String,
    approximate_creation_date_time: i64,
}

impl Record {
    /// Creates a record from an element of a Lambda event's `Records`.
    pub fn from_event(event: Value) -> Result<Self, RecordError> {
        let Envelope { dynamodb } = Envelope::deserialize(&event)?;
        let seconds = dynamodb.approximate_creation_date_time;
        Ok(Self {
            sequence_number: dynamodb.sequence_number.parse()?,
            created_at: DateTime::from_timestamp(seconds, 0).ok_or(RecordError::Created(seconds))?,
            bytes: event.to_string().len(),
            event: Arc::new(event),
        })
    }

    /// Returns the same change with another sequence number, for histories that are spread over several shards.
    pub fn at(&self, sequence_number: SequenceNumber) -> Self {
        let mut event = Value::clone(&self.event);
        event["dynamodb"]["SequenceNumber"] = sequence_number.as_str().into();
        Self { sequence_number, created_at: self.created_at, bytes: self.bytes, event: Arc::new(event) }
    }

    /// Returns its place in its shard.
    pub fn sequence_number(&self) -> &SequenceNumber {
        &self.sequence_number
    }

    /// Returns the approximate time of the change, in whole seconds.
    pub fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    /// Returns the record as the function sees it.
    pub fn event(&self) -> &Value {
        &self.event
    }

    /// Returns its size as JSON, which counts towards the payload of an invocation.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(number: &str, created: &Value) -> Value {
        json!({"eventID": "1", "dynamodb": {"SequenceNumber": number, "ApproximateCreationDateTime": created}})
    }

    #[test]
    fn a_record_knows_its_place_and_time() {
        let record = Record::from_event(event("0042", &json!(1_796_000_000))).unwrap();
        assert_eq!(record.sequence_number(), &SequenceNumber::from(42));
        assert_eq!(record.created_at().timestamp(), 1_796_000_000);
        let moved = record.at(7.into());
        assert_eq!(moved.sequence_number(), &SequenceNumber::from(7));
        assert_eq!(moved.event(), &event("7", &json!(1_796_000_000)));
        assert_eq!(record.event(), &event("0042", &json!(1_796_000_000)), "the original is untouched");
    }

    #[test]
    fn other_values_are_errors() {
        for bad in
            [json!(null), json!({}), event("x", &json!(1)), event("1", &json!("1")), event("1", &json!(i64::MAX))]
        {
            assert!(Record::from_event(bad.clone()).is_err(), "{bad}");
        }
    }
}
