//! Configuration of `query-account`.

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_files::Storage;
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
    /// `SEALED_URL`: the storage of sealed parts.
    pub sealed: Storage,
}

impl Config {
    /// Reads the configuration. An error names the variable.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        let access = Access {
            account_claim: lookup.account_claim()?,
            machine_clients: lookup.machine_clients()?,
            is_open: lookup.is_sam_local(),
        };
        let (data, business_days) = (lookup.data()?, lookup.business_days()?);
        let sealed = lookup.required("SEALED_URL", "where sealed parts are stored, such as s3://bucket")?;
        Ok(Self { data, access, business_days, sealed })
    }
}
