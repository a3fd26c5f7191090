//! The configuration of `dispatch`.

use payments_boot::{ConfigError, DataConfig, Lookup};

/// The configuration of `dispatch`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The tables.
    pub data: DataConfig,
    /// `REQUEST_QUEUE_URL`: the queue of requests to the transaction service.
    pub queue_url: String,
}

impl Config {
    /// Reads the configuration.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        let queue_url = lookup.required("REQUEST_QUEUE_URL", "the URL of the transaction service's queue")?;
        Ok(Self { data: lookup.data()?, queue_url })
    }
}
