//! How Lambda delivers, imitated: event source mappings as state machines that are driven step by
//! step, with time as an argument. The local runner and the fault tests drive the same ones.
//!
//! No emulator at hand honours retries, bisecting and partial failures of streams, and those are
//! what the functions must withstand. Nothing here sleeps, reads a clock or draws a random number.
//!
//! | module | imitates |
//! |---|---|
//! | [`filter`] | filter criteria of an event source mapping |
//! | [`stream`] | the mapping from a DynamoDB stream to a function |
//! | [`source`] | the stream: a real one, or one in memory with shards that split |
//! | [`record`] | a stream record as a function sees it, with its place in its shard |
//! | [`queue`] | the mapping from an SQS queue to a function |

mod batch;
mod dynamodb;
mod failure;
pub mod filter;
mod in_memory;
pub mod queue;
pub mod record;
mod response;
mod shard;
pub mod source;
pub mod stream;
mod window;

pub use dynamodb::DynamoDbStream;
pub use filter::{FilterCriteria, FilterError};
pub use in_memory::{InMemoryError, InMemoryStream};
pub use payments_model::sequence_number::{SequenceNumber, SequenceNumberError};
pub use queue::{QueueDelivery, QueueMapping, QueueMappingSettings};
pub use record::{Record, RecordError};
pub use source::{Cursor, Page, Position, ShardId, Source, SourceError, StreamShard};
pub use stream::{
    Condition, Delivery, Invocation, Outcome, SettingsError, StartingPosition, StreamMapping, StreamSettings,
};
