//! The configuration of `publish`.

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_files::Storage;

/// The configuration of `publish`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The tables.
    pub data: DataConfig,
    /// `JOURNAL_URL`: the storage of the journal.
    pub storage: Storage,
    /// `WEBHOOK_SECRET`: the id of the master secret of webhooks.
    pub webhook_secret: String,
    /// `EVENT_BUS`: the name of the event bus. Without it, no events are put on a bus.
    pub event_bus: Option<String>,
}

impl Config {
    /// Reads the configuration.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        let storage = lookup.required("JOURNAL_URL", "where the journal is stored, such as s3://bucket/prefix")?;
        let (webhook_secret, event_bus) = (lookup.webhook_secret()?, lookup.text("EVENT_BUS"));
        Ok(Self { data: lookup.data()?, storage, webhook_secret, event_bus })
    }
}
