//! What `daily-due-sweeper` has to be told.

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_model::{BusinessZone, ShardCount};

/// How many payments are claimed per second and shard, unless `CLAIMS_PER_SECOND_PER_SHARD` says
/// otherwise. A claim costs the shard's key 2 units of the 1,000 it takes per second; 200 claims
/// are 400, which leaves the feed (56 inserts) and the settlements (56 × 3) room to spare.
const DEFAULT_CLAIMS_PER_SECOND: u32 = 200;

/// How often a payment is handed over before somebody has to look, unless `MAX_DISPATCH_ATTEMPTS`
/// says otherwise: with the waits doubling from an hour, eight hand-overs span five days.
const DEFAULT_MAX_ATTEMPTS: u32 = 8;

/// The configuration of `daily-due-sweeper`.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the data is.
    pub data: DataConfig,
    /// `BUSINESS_TIME_ZONE`.
    pub zone: BusinessZone,
    /// `READ_SHARDS`: over how many shards payments may be spread.
    pub read_shards: ShardCount,
    /// `CLAIMS_PER_SECOND_PER_SHARD`; 0 for as many as there can be.
    pub claims_per_second: u32,
    /// `MAX_DISPATCH_ATTEMPTS`.
    pub max_attempts: u32,
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
            claims_per_second: lookup.number("CLAIMS_PER_SECOND_PER_SHARD", DEFAULT_CLAIMS_PER_SECOND)?,
            max_attempts: lookup.number("MAX_DISPATCH_ATTEMPTS", DEFAULT_MAX_ATTEMPTS)?,
        })
    }
}
