//! Hand-overs: what the stream says became pending, read from its records.

use aws_lambda_events::dynamodb::EventRecord;
use payments_model::HeadKey;
use payments_store::key::parse_head_key;
use serde::Deserialize;

/// One payment to be handed over, as a stream record announced it. Whether it still is to be,
/// only its head knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Handover {
    /// The record's place in the stream.
    pub(crate) sequence_number: String,
    /// Where the head is.
    pub(crate) key: HeadKey,
    /// Which hand-over this is.
    pub(crate) attempt: u32,
}

/// What is read of a record's new image.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Image {
    pk: String,
    sk: String,
    dispatch_attempt: u32,
}

impl Handover {
    /// Reads a record that the mapping's filter let through.
    ///
    /// # Errors
    /// Where it is no image of a pending head: a poison record.
    pub(crate) fn of(record: EventRecord) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let sequence_number = record.change.sequence_number.ok_or("the record has no sequence number")?;
        let image: Image = serde_dynamo::from_item(record.change.new_image)?;
        let key = parse_head_key(&image.pk, &image.sk)?;
        Ok(Self { sequence_number, key, attempt: image.dispatch_attempt })
    }
}
