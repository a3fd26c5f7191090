//! What `ingest` has to be told.

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_model::{BusinessZone, ShardCount};

/// How far ahead payments are taken, in days, unless `HORIZON_DAYS` says otherwise: two years.
const DEFAULT_HORIZON_DAYS: u32 = 731;

/// The configuration of `ingest`.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the data is.
    pub data: DataConfig,
    /// `BUSINESS_TIME_ZONE`.
    pub zone: BusinessZone,
    /// `WRITE_SHARDS`: over how many shards new payments are spread.
    pub write_shards: ShardCount,
    /// `HORIZON_DAYS`: how many days ahead a payment may be.
    pub horizon_days: u32,
}

impl Config {
    /// Reads it.
    ///
    /// # Errors
    /// [`ConfigError`], which names the variable.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            data: DataConfig::read(lookup)?,
            zone: lookup.required("BUSINESS_TIME_ZONE", "the bank's time zone, such as Europe/London")?,
            write_shards: lookup
                .required("WRITE_SHARDS", "the number of shards that payments are spread over, such as 10")?,
            horizon_days: lookup.optional("HORIZON_DAYS")?.unwrap_or(DEFAULT_HORIZON_DAYS),
        })
    }
}
