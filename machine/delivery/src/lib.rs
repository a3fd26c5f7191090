//! Lambda's event source mappings, simulated step by step, with time as an argument.
//!
//! The local runner and the fault tests drive the same mappings. No emulator that we know of simulates the retries,
//! splits and partial failures of stream mappings, which the functions must withstand. Nothing here sleeps, reads a
//! clock or draws a random number.
//!
//! | module | simulates |
//! |---|---|
//! | [`filter`] | filter criteria of a mapping |
//! | [`stream`] | the mapping from a DynamoDB stream to a function |
//! | [`settings`] | the settings of that mapping |
//! | [`source`] | the stream: a real one, or one in memory with shards that split |
//! | [`record`] | a stream record as a function sees it, with its place in its shard |
//! | [`queue`] | the mapping from an SQS queue to a function |

mod batch;
mod dynamodb;
mod failure;
pub mod filter;
mod in_memory;
mod outcome;
mod page;
pub mod queue;
pub mod record;
mod response;
pub mod settings;
mod shard;
pub mod source;
pub mod stream;
mod window;

pub use dynamodb::DynamoDbStream;
pub use filter::{Filter, FilterError};
pub use in_memory::{InMemoryError, InMemoryStream};
pub use outcome::{Delivery, DeliveryOutcome};
pub use page::{Cursor, Page, Position, ShardId, SourceError, StreamShard};
pub use payments_model::sequence_number::{SequenceNumber, SequenceNumberError};
pub use queue::{QueueDelivery, QueueMapping, QueueMappingSettings};
pub use record::{Record, RecordError};
pub use settings::{Destination, SettingsError, StreamSettings, seconds};
pub use source::Source;
pub use stream::StreamMapping;
pub use window::Invocation;
