//! The configuration of `stream-aggregator`.

use payments_boot::{ConfigError, DataConfig, Lookup};

/// The configuration of `stream-aggregator`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The tables.
    pub data: DataConfig,
    /// `EVENT_LOG`: whether events are appended to the log. Not by default.
    pub event_log: bool,
}

impl Config {
    /// Reads the configuration.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        Ok(Self { data: lookup.data()?, event_log: lookup.event_log()? })
    }
}
