//! The configuration of `undo`.

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_files::Storage;
use payments_model::{BusinessZone, ShardCount};

/// The default of `CLAIMS_PER_SECOND_PER_SHARD`, which the sweep has too. With 32 shards they are 640 cancels a second while the
/// sweep holds the payments: as many units of the index `due` as the claims that it does not make.
const DEFAULT_CLAIMS_PER_SECOND: u32 = 20;

/// The configuration of `undo`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The tables.
    pub data: DataConfig,
    /// `BUSINESS_TIME_ZONE`.
    pub zone: BusinessZone,
    /// `READ_SHARDS`: the number of shards to read.
    pub read_shards: ShardCount,
    /// `CLAIMS_PER_SECOND_PER_SHARD`: cancels per second for each shard while the sweep is held. 0 is unlimited.
    pub cancels_per_second: u32,
    /// `UNDO_URL`: the storage of plans and results.
    pub storage: Storage,
}

impl Config {
    /// Reads the configuration.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            data: lookup.data()?,
            zone: lookup.zone()?,
            read_shards: lookup.read_shards()?,
            cancels_per_second: lookup.number("CLAIMS_PER_SECOND_PER_SHARD", DEFAULT_CLAIMS_PER_SECOND)?,
            storage: lookup.required("UNDO_URL", "where plans and results are stored, such as s3://bucket/prefix")?,
        })
    }
}
