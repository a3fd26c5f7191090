//! What `query-account` has to be told.

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_model::BusinessZone;

/// The configuration of `query-account`.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the data is.
    pub data: DataConfig,
    /// `BUSINESS_TIME_ZONE`.
    pub zone: BusinessZone,
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
        })
    }
}
