//! Configuration of `query-account`.

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_http::Access;
use payments_model::BusinessDays;

/// The configuration of `query-account`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The tables.
    pub data: DataConfig,
    /// The access rules.
    pub access: Access,
    /// The bank's time zone, calendars and cut-offs.
    pub business_days: BusinessDays,
}

impl Config {
    /// Reads the configuration. An error names the variable.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        let access = Access {
            account_claim: lookup.account_claim()?,
            machine_clients: lookup.machine_clients()?,
            is_open: lookup.is_sam_local(),
        };
        Ok(Self { data: lookup.data()?, access, business_days: lookup.business_days()? })
    }
}
