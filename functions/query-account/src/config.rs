//! What `query-account` has to be told.

use payments_boot::{AccessConfig, ConfigError, DataConfig, Lookup};
use payments_http::Access;
use payments_model::BusinessZone;

/// The configuration of `query-account`.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the data is.
    pub data: DataConfig,
    /// Who may do what.
    pub access: Access,
    /// `BUSINESS_TIME_ZONE`.
    pub zone: BusinessZone,
}

impl Config {
    /// Reads it.
    ///
    /// # Errors
    /// [`ConfigError`], which names the variable.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        let AccessConfig { account_claim, is_sam_local } = AccessConfig::read(lookup)?;
        Ok(Self {
            data: DataConfig::read(lookup)?,
            access: Access { account_claim, is_open: is_sam_local },
            zone: lookup.required("BUSINESS_TIME_ZONE", "the bank's time zone, such as Europe/London")?,
        })
    }
}
