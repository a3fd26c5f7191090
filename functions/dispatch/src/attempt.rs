//! Dispatch attempts, read from stream records.

use aws_lambda_events::dynamodb::EventRecord;
use payments_model::HeadKey;
use payments_store::key::parse_head_key;
use serde::Deserialize;

/// A dispatch attempt that a stream record asks for. The payment's head decides whether the attempt is still wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DispatchAttempt {
    /// The record's sequence number.
    pub(crate) sequence_number: String,
    /// The key of the head.
    pub(crate) key: HeadKey,
    /// The number of the attempt, from 1.
    pub(crate) number: u32,
}

/// The attributes read from a record's new image.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Image {
    pk: String,
    sk: String,
    dispatch_attempt: u32,
}

impl DispatchAttempt {
    /// Reads a record that passed the mapping's filter.
    ///
    /// # Errors
    /// An error if the record has no sequence number, or if its new image is not a pending head. Such a
    /// record is poison.
    pub(crate) fn from_record(record: EventRecord) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let sequence_number = record.change.sequence_number.ok_or("the record has no sequence number")?;
        let image: Image = serde_dynamo::from_item(record.change.new_image)?;
        let key = parse_head_key(&image.pk, &image.sk)?;
        Ok(Self { sequence_number, key, number: image.dispatch_attempt })
    }
}
