//! Facts that laws and workloads share: attributes, heads, intents, changes, the past, what clients know of dates.

pub mod attributes;
pub mod changes;
pub(crate) mod closed_dates;
pub mod heads;
pub mod intent;
pub mod past;
pub mod results;
pub(crate) mod zone;
