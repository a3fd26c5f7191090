//! The configuration of `recount`.

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_model::business_days::CurrencyCalendars;
use payments_model::{BusinessZone, ShardCount};

/// The configuration of `recount`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The tables.
    pub data: DataConfig,
    /// `BUSINESS_TIME_ZONE`.
    pub zone: BusinessZone,
    /// `READ_SHARDS`: the number of shards to read.
    pub read_shards: ShardCount,
    /// `CALENDARS`: the calendars of currencies.
    pub calendars: CurrencyCalendars,
    /// `HORIZON_DAYS`: how many days ahead a payment may be due.
    pub horizon_days: u32,
}

impl Config {
    /// Reads the configuration.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            data: lookup.data()?,
            zone: lookup.zone()?,
            read_shards: lookup.read_shards()?,
            calendars: lookup.calendars()?,
            horizon_days: lookup.horizon_days()?,
        })
    }
}
