//! The configuration of `redate`.

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_model::{BusinessDays, ShardCount};

/// The default of `MOVES_PER_SECOND_PER_SHARD`, which the archive has too. With 8 shards at once they are 240 payments a second: up to
/// 1,920 units of the long-term table for details of 8 KB, and 480 of the index `due`, beside those of the feed and the sweep.
const DEFAULT_MOVES_PER_SECOND: u32 = 30;

/// The configuration of `redate`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The tables.
    pub data: DataConfig,
    /// `CALENDARS`, `CUT_OFFS`, `CUT_OFF_LEAD_MINUTES`, `DATE_RULE` and `BUSINESS_TIME_ZONE`.
    pub business_days: BusinessDays,
    /// `READ_SHARDS`: the number of shards to read.
    pub read_shards: ShardCount,
    /// `MOVES_PER_SECOND_PER_SHARD`: payments moved per second on each shard. 0 is unlimited.
    pub moves_per_second: u32,
}

impl Config {
    /// Reads the configuration.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            data: lookup.data()?,
            business_days: lookup.business_days()?,
            read_shards: lookup.read_shards()?,
            moves_per_second: lookup.number("MOVES_PER_SECOND_PER_SHARD", DEFAULT_MOVES_PER_SECOND)?,
        })
    }
}
