//! Configuration of `query-due`.

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_http::Access;
use payments_model::{BusinessZone, ShardCount};

/// The configuration of `query-due`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The tables.
    pub data: DataConfig,
    /// The access rules.
    pub access: Access,
    /// The bank's time zone.
    pub zone: BusinessZone,
    /// The number of shards to read.
    pub read_shards: ShardCount,
}

impl Config {
    /// Reads the configuration. An error names the variable.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        let access = Access {
            account_claim: lookup.account_claim()?,
            machine_clients: lookup.machine_clients()?,
            is_open: lookup.is_sam_local(),
        };
        Ok(Self { data: lookup.data()?, access, zone: lookup.zone()?, read_shards: lookup.read_shards()? })
    }
}
