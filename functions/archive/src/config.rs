//! The configuration of `archive`.

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_model::{BusinessZone, ShardCount};

/// The default of `MOVES_PER_SECOND_PER_SHARD`. With 32 shards they are 960 a second, for a unit of each table and of each
/// index. One partition accepts them all. A backlog of two million takes 35 minutes of the three and a
/// half hours that the schedule allows.
const DEFAULT_MOVES_PER_SECOND: u32 = 30;

/// The configuration of `archive`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The tables.
    pub data: DataConfig,
    /// `BUSINESS_TIME_ZONE`.
    pub zone: BusinessZone,
    /// `READ_SHARDS`: the number of shards to read.
    pub read_shards: ShardCount,
    /// `MOVES_PER_SECOND_PER_SHARD`: payments archived per second on each shard. 0 is unlimited.
    pub moves_per_second: u32,
}

impl Config {
    /// Reads the configuration.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            data: lookup.data()?,
            zone: lookup.zone()?,
            read_shards: lookup.read_shards()?,
            moves_per_second: lookup.number("MOVES_PER_SECOND_PER_SHARD", DEFAULT_MOVES_PER_SECOND)?,
        })
    }
}
