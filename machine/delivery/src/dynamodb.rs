//! A stream behind the DynamoDB Streams API, and its records as Lambda shows them.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use aws_sdk_dynamodbstreams::Client;
use aws_sdk_dynamodbstreams::error::SdkError;
use aws_sdk_dynamodbstreams::operation::get_records::GetRecordsOutput;
use aws_sdk_dynamodbstreams::types::{self, AttributeValue, ShardIteratorType};
use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::page::{Cursor, Page, Position, ShardId, SourceError, StreamShard};
use crate::record::Record;
use payments_model::sequence_number::SequenceNumber;

/// A table's stream.
#[derive(Clone)]
pub struct DynamoDbStream {
    client: Client,
    arn: String,
    shown: Shown,
    is_trimmed: IsTrimmed,
}

/// Whether a record that was made at this time of the engine is no longer kept.
type IsTrimmed = Arc<dyn Fn(DateTime<Utc>) -> bool + Send + Sync>;

/// The reader's time of a record that was made at this time of the engine.
type Shown = Arc<dyn Fn(DateTime<Utc>) -> DateTime<Utc> + Send + Sync>;

/// A record of a Lambda event. As in Lambda, an image that the change does not have is absent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventRecord<'a> {
    #[serde(rename = "eventID")]
    event_id: &'a str,
    event_name: &'a str,
    event_version: &'a str,
    event_source: &'a str,
    aws_region: &'a str,
    dynamodb: Change<'a>,
    #[serde(rename = "eventSourceARN")]
    event_source_arn: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_identity: Option<UserIdentity<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Change<'a> {
    approximate_creation_date_time: i64,
    keys: serde_dynamo::Item,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_image: Option<serde_dynamo::Item>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_image: Option<serde_dynamo::Item>,
    sequence_number: &'a str,
    size_bytes: i64,
    stream_view_type: &'a str,
}

/// The author of the change, if no caller made it: DynamoDB itself, for TTL.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UserIdentity<'a> {
    r#type: &'a str,
    principal_id: &'a str,
}

impl DynamoDbStream {
    /// Returns the stream of a table: the one that was enabled last.
    pub async fn for_table(client: Client, table: &str) -> Result<Self, SourceError> {
        let (mut from, mut latest) = (None, None);
        loop {
            let page = client.list_streams().table_name(table).set_exclusive_start_stream_arn(from).send().await;
            let page = page.map_err(failed("ListStreams"))?;
            let streams = page.streams().iter();
            latest = latest.max(streams.filter_map(|s| Some((s.stream_label.clone()?, s.stream_arn.clone()?))).max());
            from = page.last_evaluated_stream_arn;
            if from.is_none() {
                let (_, arn) = latest.ok_or_else(|| SourceError::NoStream(table.to_owned()))?;
                return Ok(Self { client, arn, shown: Arc::new(|made_at| made_at), is_trimmed: Arc::new(|_| false) });
            }
        }
    }

    /// Shows when records were made in the reader's time. `shown` turns the engine's time into it when they are read.
    #[must_use]
    pub fn in_time_of(self, shown: impl Fn(DateTime<Utc>) -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        Self { shown: Arc::new(shown), ..self }
    }

    /// Passes over records that DynamoDB would have deleted: the embedded engine keeps all.
    #[must_use]
    pub fn trimmed(self, is_trimmed: impl Fn(DateTime<Utc>) -> bool + Send + Sync + 'static) -> Self {
        Self { is_trimmed: Arc::new(is_trimmed), ..self }
    }

    /// Returns the stream's ARN.
    pub fn arn(&self) -> &str {
        &self.arn
    }

    pub(crate) async fn shards(&self) -> Result<Vec<StreamShard>, SourceError> {
        let (mut from, mut shards) = (None, Vec::new());
        loop {
            let page = self.client.describe_stream().stream_arn(&self.arn).set_exclusive_start_shard_id(from).send();
            let page = page.await.map_err(failed("DescribeStream"))?;
            let stream = page.stream_description.ok_or(SourceError::Incomplete("DescribeStream"))?;
            for shard in stream.shards() {
                let id = shard.shard_id().ok_or(SourceError::Incomplete("DescribeStream"))?.into();
                shards.push(StreamShard { id, parent: shard.parent_shard_id().map(ShardId::from) });
            }
            from = stream.last_evaluated_shard_id;
            if from.is_none() {
                return Ok(shards);
            }
        }
    }

    /// Reads a page. A shard has ended when GetRecords returns no further iterator. The ending sequence number of
    /// DescribeStream does not help: the embedded engine gives open shards one, too.
    pub(crate) async fn read(&self, shard: &ShardId, cursor: &mut Cursor, limit: usize) -> Result<Page, SourceError> {
        loop {
            let page = self.page(shard, cursor, limit).await?;
            let (mut records, mut is_all_trimmed) = (Vec::new(), !page.records().is_empty());
            for record in page.records() {
                let (made_at, event) = (made_at(record)?, self.event(record)?);
                cursor.position = Position::After(event.sequence_number().clone());
                if !(self.is_trimmed)(made_at) {
                    is_all_trimmed = false;
                    records.push(event);
                }
            }
            cursor.iterator = page.next_shard_iterator;
            if !is_all_trimmed || cursor.iterator.is_none() {
                return Ok(Page { records, closed: cursor.iterator.is_none() });
            }
        }
    }

    async fn page(&self, shard: &ShardId, cursor: &Cursor, limit: usize) -> Result<GetRecordsOutput, SourceError> {
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        if let Some(iterator) = &cursor.iterator {
            let page = self.client.get_records().shard_iterator(iterator).limit(limit).send().await;
            // An iterator expires after 15 minutes; the position leads to a new one.
            let expired = |error: &SdkError<_>| {
                error.as_service_error().is_some_and(
                    aws_sdk_dynamodbstreams::operation::get_records::GetRecordsError::is_expired_iterator_exception,
                )
            };
            if !page.as_ref().is_err_and(expired) {
                return page.map_err(failed("GetRecords"));
            }
        }
        let iterator = self.iterator(shard, &cursor.position).await?;
        let page = self.client.get_records().shard_iterator(iterator).limit(limit).send().await;
        page.map_err(failed("GetRecords"))
    }

    async fn iterator(&self, shard: &ShardId, position: &Position) -> Result<String, SourceError> {
        let (kind, number) = match position {
            Position::TrimHorizon => (ShardIteratorType::TrimHorizon, None),
            Position::At(number) => (ShardIteratorType::AtSequenceNumber, Some(number)),
            Position::After(number) => (ShardIteratorType::AfterSequenceNumber, Some(number)),
        };
        let call = self.client.get_shard_iterator().stream_arn(&self.arn).shard_id(shard.as_str());
        let call = call.shard_iterator_type(kind).set_sequence_number(number.map(SequenceNumber::to_string));
        let reply = call.send().await.map_err(failed("GetShardIterator"))?;
        reply.shard_iterator.ok_or(SourceError::Incomplete("GetShardIterator"))
    }

    fn event(&self, record: &types::Record) -> Result<Record, SourceError> {
        let change = record.dynamodb().ok_or(SourceError::Incomplete("GetRecords"))?;
        let created = made_at(record)?;
        let event = EventRecord {
            event_id: record.event_id().unwrap_or_default(),
            event_name: record.event_name().map_or("", |name| name.as_str()),
            event_version: record.event_version().unwrap_or_default(),
            event_source: record.event_source().unwrap_or_default(),
            aws_region: record.aws_region().unwrap_or_default(),
            dynamodb: Change {
                approximate_creation_date_time: (self.shown)(created).timestamp(),
                keys: item(change.keys()).unwrap_or_default(),
                new_image: item(change.new_image()),
                old_image: item(change.old_image()),
                sequence_number: change.sequence_number().ok_or(SourceError::Incomplete("GetRecords"))?,
                size_bytes: change.size_bytes().unwrap_or_default(),
                stream_view_type: change.stream_view_type().map_or("", |view| view.as_str()),
            },
            event_source_arn: &self.arn,
            user_identity: record.user_identity().map(|identity| UserIdentity {
                r#type: identity.r#type().unwrap_or_default(),
                principal_id: identity.principal_id().unwrap_or_default(),
            }),
        };
        let event = serde_json::to_value(event).map_err(crate::record::RecordError::from)?;
        Ok(Record::from_event(event)?)
    }
}

/// The engine's time at which a record was made.
fn made_at(record: &types::Record) -> Result<DateTime<Utc>, SourceError> {
    let made_at = record.dynamodb().and_then(types::StreamRecord::approximate_creation_date_time);
    let made_at = made_at.and_then(|at| DateTime::from_timestamp(at.secs(), at.subsec_nanos()));
    made_at.ok_or(SourceError::Incomplete("GetRecords"))
}

impl fmt::Debug for DynamoDbStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DynamoDbStream({})", self.arn)
    }
}

fn item(attributes: Option<&HashMap<String, AttributeValue>>) -> Option<serde_dynamo::Item> {
    attributes.map(|attributes| serde_dynamo::Item::from(attributes.clone()))
}

fn failed<E>(operation: &'static str) -> impl FnOnce(SdkError<E>) -> SourceError
where
    E: Error + Send + Sync + 'static,
{
    move |error| SourceError::Call { operation, source: Box::new(error) }
}
