//! Parses the event: a batch of records of one stream shard. The mapping's tumbling window makes Lambda name the shard.
//!
//! Each record is parsed on its own, so an invalid record does not stop the other records. (`TimeWindowEvent` of
//! `aws_lambda_events` parses all records or none. For a mapping without a window, it only reports a missing field.)

use aws_lambda_events::dynamodb::EventRecord;
use payments_model::{HeadKey, IrregularEvent, Logged, SequenceNumber, UtcSecond};
use payments_store::key::parse_head_key;
use payments_store::{Counted, counted, logged};
use serde::Deserialize;
use serde_dynamo::AttributeValue;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::fold::{Change, Effect};

/// A tumbling-window event of a DynamoDB stream, with the fields that this function needs.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    #[serde(rename = "Records")]
    records: Vec<Box<RawValue>>,
    shard_id: Option<String>,
    #[serde(rename = "eventSourceARN")]
    event_source_arn: Option<String>,
}

/// The reason why an event cannot be counted. The mapping retries the event for ever, and the mapping's
/// iterator age raises an alarm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The event does not name its shard.
    #[error(
        "the event names no stream shard, so repeated records cannot be recognised; \
         set TumblingWindowInSeconds on the function's DynamoDB event"
    )]
    NoShard,
    /// The event is from another stream.
    #[error(
        "the event is from {0:?}, which is not a stream of the table {1:?}; \
         set Stream on the function's DynamoDB event to that table's StreamArn"
    )]
    OtherTable(String, String),
    /// A record has no valid sequence number.
    #[error(
        "a record has no valid sequence number, so a repetition cannot be recognised; \
         the mapping retries it for ever, see docs/alarms.md, CountsBehind"
    )]
    NoSequenceNumber,
}

/// The part of a record that must be readable.
#[derive(Deserialize)]
struct Numbered {
    dynamodb: NumberedChange,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NumberedChange {
    sequence_number: String,
    #[serde(default)]
    keys: Value,
}

impl Event {
    /// Returns the event's stream shard.
    ///
    /// # Errors
    /// [`EventError`] if the mapping is configured wrongly.
    pub(crate) fn stream_shard(&self, table: &str) -> Result<&str, EventError> {
        let shard = self.shard_id.as_deref().filter(|shard| !shard.is_empty()).ok_or(EventError::NoShard)?;
        let arn = self.event_source_arn.as_deref().unwrap_or_default();
        let of_table = arn.split('/').nth(1).is_some_and(|name| name == table);
        let is_table_stream = arn.contains(":table/") && arn.contains("/stream/");
        if of_table && is_table_stream {
            Ok(shard)
        } else {
            Err(EventError::OtherTable(arn.to_owned(), table.to_owned()))
        }
    }

    /// The ARN of the event's stream.
    pub(crate) fn source(&self) -> &str {
        self.event_source_arn.as_deref().unwrap_or_default()
    }

    /// Returns the changes of this table's items, in the order of the stream. `now` is the time of reading.
    ///
    /// # Errors
    /// [`EventError::NoSequenceNumber`] if a record has no valid sequence number.
    pub fn changes(&self, table: &str, now: UtcSecond) -> Result<Vec<Change>, EventError> {
        let shard = self.shard_id.as_deref().unwrap_or_default();
        let place = Place { table, shard, now };
        let mut changes = self.records.iter().map(|record| read(place, record)).collect::<Result<Vec<_>, _>>()?;
        changes.sort_by(|one, other| one.sequence_number.cmp(&other.sequence_number));
        changes.dedup_by(|one, other| one.sequence_number == other.sequence_number);
        Ok(changes)
    }
}

/// The place and the time of a read record.
#[derive(Clone, Copy)]
struct Place<'p> {
    table: &'p str,
    shard: &'p str,
    now: UtcSecond,
}

fn read(place: Place<'_>, record: &RawValue) -> Result<Change, EventError> {
    let table = place.table;
    let whole = serde_json::from_str::<EventRecord>(record.get());
    let (number, keys) = match &whole {
        Ok(record) => (record.change.sequence_number.clone(), Value::Null),
        Err(_) => {
            let part = serde_json::from_str::<Numbered>(record.get()).ok().map(|record| record.dynamodb);
            part.map_or_else(Default::default, |part| (Some(part.sequence_number), part.keys))
        }
    };
    let sequence_number: SequenceNumber =
        number.and_then(|number| number.parse().ok()).ok_or(EventError::NoSequenceNumber)?;
    let at = format!("{}/{sequence_number}", place.shard);
    let created_at = whole.as_ref().ok();
    let created_at = created_at.and_then(|record| UtcSecond::new(record.change.approximate_creation_date_time).ok());
    let (effect, logged) = match whole {
        Ok(record) => {
            let (effect, logged) = (effect(&sequence_number, table, &record), log_of(&record, place.now, &at));
            if let (Effect::Moved { .. }, Logged::Irregular(irregular)) = (&effect, &logged) {
                let text = |name: &str| text_of(&record, name);
                let key = key_of(text("pk"), text("sk"));
                tracing::error!(%sequence_number, table, key, reason = irregular.reason, "a change is irregular; its event says so");
            }
            (effect, logged)
        }
        Err(error) => {
            let text = |name: &str| keys[name]["S"].as_str();
            let key = key_of(text("pk"), text("sk"));
            tracing::error!(%sequence_number, table, key, %error, "a stream record cannot be read; it is counted as unparsed");
            let key = parse_head_key(text("pk").unwrap_or_default(), text("sk").unwrap_or_default()).ok();
            // The record's images cannot be read, so the due time is a guess from the key.
            let payment = key.as_ref().map(HeadKey::guessed_due);
            let irregular = IrregularEvent { payment, at: place.now, place: at, reason: "its record cannot be read" };
            (Effect::Unreadable(None), Logged::Irregular(irregular))
        }
    };
    Ok(Change { sequence_number, created_at, effect, logged })
}

/// Formats an item's key as log lines and docs/alarms.md show keys: partition key and sort key.
fn key_of(partition: Option<&str>, sort: Option<&str>) -> String {
    format!("{} / {}", partition.unwrap_or_default(), sort.unwrap_or_default())
}

/// An attribute of a record's key.
fn text_of<'r>(record: &'r EventRecord, name: &str) -> Option<&'r str> {
    if let Some(AttributeValue::S(text)) = record.change.keys.get(name) { Some(text) } else { None }
}

/// Returns the meaning of a record for the log. `EventRecord` has an empty image for a missing image.
fn log_of(record: &EventRecord, now: UtcSecond, at: &str) -> Logged {
    let [before, after] =
        [&record.change.old_image, &record.change.new_image].map(|image| Some(image).filter(|image| !image.is_empty()));
    logged(before, after, now, at)
}

/// Returns the effect of a record's images on the counters.
fn effect(sequence_number: &SequenceNumber, table: &str, record: &EventRecord) -> Effect {
    let text = |name: &str| text_of(record, name);
    let key = || key_of(text("pk"), text("sk"));
    // `EventRecord` has an empty image for a missing image.
    let image = |image: &serde_dynamo::Item| (!image.is_empty()).then(|| counted(image)).transpose();
    let (before, after) = (image(&record.change.old_image), image(&record.change.new_image));
    match (before, after) {
        (Ok(None), Ok(None)) => {
            tracing::error!(
                %sequence_number,
                table,
                key = key(),
                "a stream record has no image; set the view type NEW_AND_OLD_IMAGES"
            );
            Effect::Unreadable(None)
        }
        (Ok(before), Ok(after)) => Effect::Moved { before, after },
        (before, after) => {
            let date = |side: &Result<Option<Counted>, payments_store::Uncountable>| match side {
                Ok(counted) => counted.map(|counted| counted.due_date),
                Err(error) => error.due_date,
            };
            let due_date = date(&after).or_else(|| date(&before));
            let error = before.err().or(after.err()).map(|error| error.to_string());
            tracing::error!(
                %sequence_number,
                table,
                key = key(),
                ?due_date,
                error,
                "a head is invalid; its change is counted as unparsed"
            );
            Effect::Unreadable(due_date)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> UtcSecond {
        "2026-12-01T10:00:00Z".parse().unwrap()
    }

    fn event(shard: Option<&str>, arn: &str) -> Event {
        serde_json::from_value(json!({ "Records": [], "shardId": shard, "eventSourceARN": arn })).unwrap()
    }

    #[test]
    fn errors_name_the_property_to_set() {
        let arn = "arn:aws:dynamodb:eu-west-2:123456789012:table/payments/stream/2026-11-20T09:00:00.000";
        assert_eq!(event(Some("shardId-1"), arn).stream_shard("payments"), Ok("shardId-1"));
        for (shard, arn, want) in [
            (None, arn, "TumblingWindowInSeconds"),
            (Some(""), arn, "TumblingWindowInSeconds"),
            (Some("shardId-1"), "arn:aws:dynamodb:eu-west-2:123456789012:table/payments-2/stream/2026", "Stream"),
            (Some("shardId-1"), "arn:aws:dynamodb:eu-west-2:123456789012:table/payments", "Stream"),
            (Some("shardId-1"), "arn:aws:kinesis:eu-west-2:123456789012:stream/payments", "Stream"),
            (Some("shardId-1"), "", "Stream"),
        ] {
            let error = event(shard, arn).stream_shard("payments").unwrap_err().to_string();
            assert!(error.contains(&format!("set {want} on the function's DynamoDB event")), "{error}");
        }
        let plain: Event = serde_json::from_value(json!({ "Records": [] })).unwrap();
        assert_eq!(plain.stream_shard("payments"), Err(EventError::NoShard));
    }

    #[test]
    fn records_are_sorted_by_sequence_number_and_deduplicated() {
        let forty = "9".repeat(40);
        let record = |number: &str| json!({ "dynamodb": { "SequenceNumber": number } });
        let numbers = ["10", "9", &forty, "9", "111111111111111111111"];
        let records: Vec<_> = numbers.map(record).into();
        let event: Event = serde_json::from_value(json!({ "Records": records })).unwrap();
        let sorted = event.changes("payments", now()).unwrap();
        let sorted: Vec<_> = sorted.iter().map(|change| change.sequence_number.to_string()).collect();
        assert_eq!(sorted, ["9", "10", "111111111111111111111", &forty]);
    }

    #[test]
    fn a_record_without_a_valid_sequence_number_is_an_error() {
        for record in [json!({}), json!(7), json!({ "dynamodb": { "SequenceNumber": "x" } })] {
            let event: Event = serde_json::from_value(json!({ "Records": [record] })).unwrap();
            assert_eq!(event.changes("payments", now()).unwrap_err(), EventError::NoSequenceNumber);
        }
    }
}
