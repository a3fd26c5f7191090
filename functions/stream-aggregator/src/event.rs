//! The event: a batch of one stream shard within a tumbling window, which is what tells the shard.
//!
//! Records are kept as text until each is read on its own, so that one that is no record at all
//! stops no other. (`aws_lambda_events`' `TimeWindowEvent` reads all or nothing, and says of a
//! mapping without a window only that a field is missing.)

use aws_lambda_events::dynamodb::EventRecord;
use payments_model::SequenceNumber;
use payments_store::{Counted, counted};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::fold::{Change, Effect};

/// A tumbling-window event of a DynamoDB stream, as far as it matters here.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    #[serde(rename = "Records")]
    records: Vec<Box<RawValue>>,
    shard_id: Option<String>,
    #[serde(rename = "eventSourceARN")]
    event_source_arn: Option<String>,
}

/// Why an event cannot be counted at all. The mapping retries it for ever, and its iterator age
/// raises the alarm: nothing is lost, and somebody has to look.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The event does not name its shard.
    #[error(
        "the event names no stream shard, so its records cannot be told from repeated ones; \
         set TumblingWindowInSeconds on the function's DynamoDB event"
    )]
    NoShard,
    /// The event is from another stream.
    #[error(
        "the event is from {0:?}, which is no stream of the table {1:?}; \
         set Stream on the function's DynamoDB event to that table's StreamArn"
    )]
    OtherTable(String, String),
    /// A record does not tell its place.
    #[error("a record has no sequence number, so it cannot be told from a repeated one")]
    NoPlace,
}

/// The least that a record has to tell.
#[derive(Deserialize)]
struct Place {
    dynamodb: PlaceOfChange,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PlaceOfChange {
    sequence_number: SequenceNumberText,
}

#[derive(Deserialize)]
struct SequenceNumberText(String);

impl Event {
    /// The shard that the event is of.
    ///
    /// # Errors
    /// [`EventError`] for a mapping that is set up wrongly.
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

    /// The changes, in the order of the stream.
    ///
    /// # Errors
    /// [`EventError::NoPlace`].
    pub fn changes(&self) -> Result<Vec<Change>, EventError> {
        let mut changes = self.records.iter().map(|record| read(record)).collect::<Result<Vec<_>, _>>()?;
        changes.sort_by(|one, other| one.place.cmp(&other.place));
        // The same record twice is one.
        changes.dedup_by(|one, other| one.place == other.place);
        Ok(changes)
    }
}

/// Reads one record.
fn read(record: &RawValue) -> Result<Change, EventError> {
    let whole = serde_json::from_str::<EventRecord>(record.get());
    let place = match &whole {
        Ok(record) => record.change.sequence_number.clone(),
        Err(_) => serde_json::from_str::<Place>(record.get()).ok().map(|place| place.dynamodb.sequence_number.0),
    };
    let place: SequenceNumber = place.and_then(|place| place.parse().ok()).ok_or(EventError::NoPlace)?;
    let effect = match whole {
        Ok(record) => effect(&place, &record),
        Err(error) => {
            tracing::error!(%place, %error, "a stream record cannot be read");
            Effect::Unreadable(None)
        }
    };
    Ok(Change { place, effect })
}

/// What a record's images say.
fn effect(place: &SequenceNumber, record: &EventRecord) -> Effect {
    // An image that a change has not is an empty one here.
    let image = |image: &serde_dynamo::Item| (!image.is_empty()).then(|| counted(image)).transpose();
    let (before, after) = (image(&record.change.old_image), image(&record.change.new_image));
    match (before, after) {
        (Ok(None), Ok(None)) => {
            tracing::error!(%place, "a stream record has no image; the stream's view type is not NEW_AND_OLD_IMAGES");
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
            tracing::error!(%place, ?due_date, error, "a stream record cannot be counted");
            Effect::Unreadable(due_date)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(shard: Option<&str>, arn: &str) -> Event {
        serde_json::from_value(json!({ "Records": [], "shardId": shard, "eventSourceARN": arn })).unwrap()
    }

    #[test]
    fn a_mapping_that_is_set_up_wrongly_is_told_which_property_to_set() {
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
    fn records_are_put_in_the_order_of_numbers_and_repeated_ones_are_one() {
        let forty = "9".repeat(40);
        let record = |number: &str| json!({ "dynamodb": { "SequenceNumber": number } });
        let numbers = ["10", "9", &forty, "9", "111111111111111111111"];
        let records: Vec<_> = numbers.map(record).into();
        let event: Event = serde_json::from_value(json!({ "Records": records })).unwrap();
        let places: Vec<_> = event.changes().unwrap().iter().map(|change| change.place.to_string()).collect();
        assert_eq!(places, ["9", "10", "111111111111111111111", &forty]);
    }

    #[test]
    fn a_record_without_a_place_fails_loudly() {
        for record in [json!({}), json!(7), json!({ "dynamodb": { "SequenceNumber": "x" } })] {
            let event: Event = serde_json::from_value(json!({ "Records": [record] })).unwrap();
            assert_eq!(event.changes().unwrap_err(), EventError::NoPlace);
        }
    }
}
