//! Where records come from: a stream and its shards.

use std::error::Error;
use std::fmt;

use crate::dynamodb::DynamoDbStream;
use crate::in_memory::InMemoryStream;
use crate::record::{Record, RecordError};
use payments_model::sequence_number::SequenceNumber;

/// The most records that one read returns, as GetRecords'.
pub const MAX_READ: usize = 1_000;

/// A shard's id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(String);

impl From<&str> for ShardId {
    fn from(id: &str) -> Self {
        Self(id.to_owned())
    }
}

impl ShardId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A shard and its place in the lineage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamShard {
    /// The shard.
    pub id: ShardId,
    /// The shard it was split from, which is read to its end first. A parent that the stream no
    /// longer lists has been trimmed.
    pub parent: Option<ShardId>,
}

/// Where to read a shard from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Position {
    /// At the oldest record.
    TrimHorizon,
    /// After the newest record, wherever that is at the first read.
    Latest,
    /// At this record.
    At(SequenceNumber),
    /// After this record.
    After(SequenceNumber),
}

/// A reader's place in a shard.
#[derive(Debug, Clone)]
pub struct Cursor {
    pub(crate) position: Position,
    /// The iterator that leads on from there, once there is one.
    pub(crate) iterator: Option<String>,
}

impl Cursor {
    /// A reader that starts at `position`.
    #[must_use]
    pub fn at(position: Position) -> Self {
        Self { position, iterator: None }
    }
}

/// What one read returns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    /// The records, in order; none does not mean that none will follow.
    pub records: Vec<Record>,
    /// Whether the shard has ended: nothing follows.
    pub closed: bool,
}

/// Why a stream could not be read. The reader's place has not moved.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// DynamoDB Streams refused or did not answer.
    #[error("DynamoDB Streams failed {operation}")]
    Call {
        /// The operation's name.
        operation: &'static str,
        /// What the SDK says.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The table has no stream.
    #[error("table {0} has no stream")]
    NoStream(String),
    /// A reply lacks something that every reply has.
    #[error("a reply to {0} is incomplete")]
    Incomplete(&'static str),
    /// A record that cannot be turned into an event.
    #[error("a record cannot be read")]
    Record(#[from] RecordError),
    /// No such shard.
    #[error("no shard {0}")]
    NoShard(ShardId),
}

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
    /// The stream's ARN.
    #[must_use]
    pub fn arn(&self) -> &str {
        match self {
            Self::DynamoDb(stream) => stream.arn(),
            Self::InMemory(stream) => stream.arn(),
        }
    }

    /// The stream's shards, parents before their children.
    ///
    /// # Errors
    /// [`SourceError`].
    pub async fn shards(&self) -> Result<Vec<StreamShard>, SourceError> {
        match self {
            Self::DynamoDb(stream) => stream.shards().await,
            Self::InMemory(stream) => Ok(stream.shards()),
        }
    }

    /// Up to `limit` records of a shard, at most [`MAX_READ`], and moves the cursor past them.
    ///
    /// # Errors
    /// [`SourceError`]; the cursor has not moved.
    pub async fn read(&self, shard: &ShardId, cursor: &mut Cursor, limit: usize) -> Result<Page, SourceError> {
        let limit = limit.clamp(1, MAX_READ);
        match self {
            Self::DynamoDb(stream) => stream.read(shard, cursor, limit).await,
            Self::InMemory(stream) => stream.read(shard, cursor, limit),
        }
    }

    /// Everything that a shard holds now from a position on.
    ///
    /// # Errors
    /// [`SourceError`].
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
