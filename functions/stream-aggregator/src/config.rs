//! What `stream-aggregator` has to be told.

use payments_boot::{ConfigError, DataConfig, Lookup};

/// The configuration of `stream-aggregator`.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the data is.
    pub data: DataConfig,
}

impl Config {
    /// Reads it.
    ///
    /// # Errors
    /// [`ConfigError`], which names the variable.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        Ok(Self { data: lookup.data()? })
    }
}
