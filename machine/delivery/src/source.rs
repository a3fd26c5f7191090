//! The stream that a mapping reads: a real one or one in memory.

use crate::dynamodb::DynamoDbStream;
use crate::in_memory::InMemoryStream;
use crate::page::{Cursor, Page, Position, ShardId, SourceError, StreamShard};
use crate::record::Record;

/// The most records that one read returns, as GetRecords'.
pub const MAX_READ: usize = 1_000;

/// A stream.
#[derive(Debug, Clone)]
pub enum Source {
    /// A stream behind the DynamoDB Streams API.
    DynamoDb(DynamoDbStream),
    /// A stream in memory.
    InMemory(InMemoryStream),
}

impl From<DynamoDbStream> for Source {
    fn from(stream: DynamoDbStream) -> Self {
        Self::DynamoDb(stream)
    }
}

impl From<InMemoryStream> for Source {
    fn from(stream: InMemoryStream) -> Self {
        Self::InMemory(stream)
    }
}

impl Source {
    /// Returns the stream's ARN.
    pub fn arn(&self) -> &str {
        match self {
            Self::DynamoDb(stream) => stream.arn(),
            Self::InMemory(stream) => stream.arn(),
        }
    }

    /// Returns the stream's shards, parents before their children.
    pub async fn shards(&self) -> Result<Vec<StreamShard>, SourceError> {
        match self {
            Self::DynamoDb(stream) => stream.shards().await,
            Self::InMemory(stream) => Ok(stream.shards()),
        }
    }

    /// Returns how often the list of the shards of a stream in memory has changed.
    pub(crate) fn changes(&self) -> Option<u64> {
        match self {
            Self::DynamoDb(_) => None,
            Self::InMemory(stream) => Some(stream.changes()),
        }
    }

    /// Reads up to `limit` records of a shard, at most [`MAX_READ`], and moves the cursor past them.
    pub async fn read(&self, shard: &ShardId, cursor: &mut Cursor, limit: usize) -> Result<Page, SourceError> {
        let limit = limit.clamp(1, MAX_READ);
        match self {
            // In a box: readers of a stream in memory, which are many and mostly idle, stay small.
            Self::DynamoDb(stream) => Box::pin(stream.read(shard, cursor, limit)).await,
            Self::InMemory(stream) => stream.read(shard, cursor, limit),
        }
    }

    /// Returns all records of a shard from a position on.
    pub async fn read_all(&self, shard: &ShardId, from: Position) -> Result<Vec<Record>, SourceError> {
        let mut cursor = Cursor::at(from);
        let mut records = Vec::new();
        loop {
            let page = self.read(shard, &mut cursor, MAX_READ).await?;
            if page.records.is_empty() {
                return Ok(records);
            }
            records.extend(page.records);
        }
    }
}
