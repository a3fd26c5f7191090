//! The configuration of `stream-aggregator`.

use payments_boot::{ConfigError, DataConfig, Lookup};

/// The configuration of `stream-aggregator`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The tables.
    pub data: DataConfig,
}

impl Config {
    /// Reads the configuration.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        Ok(Self { data: lookup.data()? })
    }
}
