//! What `recount` has to be told.

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_model::{BusinessZone, ShardCount};

/// The configuration of `recount`.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the data is.
    pub data: DataConfig,
    /// `BUSINESS_TIME_ZONE`.
    pub zone: BusinessZone,
    /// `READ_SHARDS`: over how many shards payments may be spread.
    pub read_shards: ShardCount,
}

impl Config {
    /// Reads it.
    ///
    /// # Errors
    /// [`ConfigError`], which names the variable.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        Ok(Self { data: lookup.data()?, zone: lookup.zone()?, read_shards: lookup.read_shards()? })
    }
}
