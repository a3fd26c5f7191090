//! Facts that laws and workloads share: heads, intents, what clients know of dates.

pub(crate) mod closed_dates;
pub mod heads;
pub mod intent;
pub(crate) mod zone;
