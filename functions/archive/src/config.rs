//! What `archive` has to be told.

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_model::{BusinessZone, ShardCount};

/// How many payments are moved per second and shard, unless `MOVES_PER_SECOND_PER_SHARD` says
/// otherwise. Over ten shards 100 are 1,000 moves: 3,000 units in either table, below the 4,000 that
/// a new one takes, and 100 of each shard key's 1,000. A day of two million is moved within 34
/// minutes of the three and a half hours that the schedule has for it.
const DEFAULT_MOVES_PER_SECOND: u32 = 100;

/// The configuration of `archive`.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the data is.
    pub data: DataConfig,
    /// `BUSINESS_TIME_ZONE`.
    pub zone: BusinessZone,
    /// `READ_SHARDS`: over how many shards payments may be spread.
    pub read_shards: ShardCount,
    /// `MOVES_PER_SECOND_PER_SHARD`; 0 for as many as there can be.
    pub moves_per_second: u32,
}

impl Config {
    /// Reads it.
    ///
    /// # Errors
    /// [`ConfigError`], which names the variable.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            data: lookup.data()?,
            zone: lookup.zone()?,
            read_shards: lookup.read_shards()?,
            moves_per_second: lookup.number("MOVES_PER_SECOND_PER_SHARD", DEFAULT_MOVES_PER_SECOND)?,
        })
    }
}
