//! Configuration of `webhooks`.

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_http::Access;

/// The configuration of `webhooks`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The tables.
    pub data: DataConfig,
    /// The access rules.
    pub access: Access,
    /// `WEBHOOK_SECRET`: the id of the master secret of webhooks.
    pub webhook_secret: String,
}

impl Config {
    /// Reads the configuration. An error names the variable.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        let access = Access {
            account_claim: lookup.account_claim()?,
            machine_clients: lookup.machine_clients()?,
            is_open: lookup.is_sam_local(),
        };
        Ok(Self { data: lookup.data()?, access, webhook_secret: lookup.webhook_secret()? })
    }
}
