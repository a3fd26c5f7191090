//! The configuration of `settle`.

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_model::BusinessZone;

/// The configuration of `settle`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The tables.
    pub data: DataConfig,
    /// `BUSINESS_TIME_ZONE`.
    pub zone: BusinessZone,
}

impl Config {
    /// Reads the configuration.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        let zone = lookup.zone()?;
        Ok(Self { data: lookup.data()?, zone })
    }
}
