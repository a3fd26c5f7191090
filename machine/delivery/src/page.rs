//! Shards, positions in them, and the pages that are read from them.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use payments_model::sequence_number::SequenceNumber;

use crate::record::{Record, RecordError};

/// A shard's id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(Arc<str>);

impl From<&str> for ShardId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl ShardId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A shard and its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamShard {
    /// The shard.
    pub id: ShardId,
    /// The shard that it was split from, which is read to its end first. A parent that the stream no longer lists was
    /// trimmed.
    pub parent: Option<ShardId>,
}

/// A position in a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Position {
    /// At the oldest record.
    TrimHorizon,
    /// At this record.
    At(SequenceNumber),
    /// After this record.
    After(SequenceNumber),
}

/// A reader's position in a shard.
#[derive(Debug, Clone)]
pub struct Cursor {
    pub(crate) position: Position,
    /// The shard iterator that leads on from there, once there is one.
    pub(crate) iterator: Option<String>,
}

impl Cursor {
    /// Creates a reader that starts at `position`.
    pub fn at(position: Position) -> Self {
        Self { position, iterator: None }
    }
}

/// The result of one read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    /// The records, in order. The page after an empty one may have records.
    pub records: Vec<Record>,
    /// Whether the shard has ended.
    pub closed: bool,
}

/// A failed read of a stream. The reader's position has not moved.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// DynamoDB Streams rejected the call or did not answer.
    #[error("{operation} of DynamoDB Streams failed")]
    Call {
        /// The operation's name.
        operation: &'static str,
        /// The SDK's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The table has no stream.
    #[error("table {0} has no stream")]
    NoStream(String),
    /// A response lacks a required field.
    #[error("the response of {0} is incomplete")]
    Incomplete(&'static str),
    /// A record is not a stream record.
    #[error("a record cannot be read")]
    Record(#[from] RecordError),
    /// The stream has no such shard, or the mapping has not found it yet.
    #[error("there is no shard {0}")]
    NoShard(ShardId),
}
