//! The configuration of `daily-due-sweeper`.

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_model::business_days::CurrencyCalendars;
use payments_model::{BusinessZone, DayLimit, ExpectedFeed, ShardCount};

/// The default of `CLAIMS_PER_SECOND_PER_SHARD`. 32 shards claim 640 payments a second, for 1,280 write units of the `due`
/// index. `docs/performance.md` shows that the index's partitions accept these beside the feed and the settlements.
const DEFAULT_CLAIMS_PER_SECOND: u32 = 20;

/// The configuration of `daily-due-sweeper`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The tables.
    pub data: DataConfig,
    /// `BUSINESS_TIME_ZONE`.
    pub zone: BusinessZone,
    /// `READ_SHARDS`: the number of shards to read.
    pub read_shards: ShardCount,
    /// `CLAIMS_PER_SECOND_PER_SHARD`: payments claimed, or redriven, per second on each shard. 0 is unlimited.
    pub claims_per_second: u32,
    /// `MAX_DISPATCH_ATTEMPTS`: the dispatch attempts of a payment before an operator has to act.
    pub max_attempts: u32,
    /// `MAX_DAY`: the limit of each due date, if there is one.
    pub max_day: Option<DayLimit>,
    /// `FEED_BY` and `FEED_PAYMENTS`: the feed that is expected of each day, if there is one.
    pub feed: Option<ExpectedFeed>,
    /// `CALENDARS`: the calendars of currencies. No feed is expected while all are closed.
    pub calendars: CurrencyCalendars,
}

impl Config {
    /// Reads the configuration.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        let (feed, calendars) = (feed(lookup)?, lookup.calendars());
        Ok(Self {
            data: lookup.data()?,
            zone: lookup.zone()?,
            read_shards: lookup.read_shards()?,
            claims_per_second: lookup.number("CLAIMS_PER_SECOND_PER_SHARD", DEFAULT_CLAIMS_PER_SECOND)?,
            max_attempts: lookup.max_attempts()?,
            max_day: lookup.optional("MAX_DAY")?,
            // A mistake in the calendars stops no claims where nobody expects a feed.
            calendars: if feed.is_some() { calendars? } else { calendars.unwrap_or_default() },
            feed,
        })
    }
}

/// Reads the expected feed: both variables, or neither.
fn feed(lookup: &Lookup<'_>) -> Result<Option<ExpectedFeed>, ConfigError> {
    const BY: &str = "FEED_BY";
    const PAYMENTS: &str = "FEED_PAYMENTS";
    if [BY, PAYMENTS].iter().all(|name| lookup.text(name).is_none()) {
        return Ok(None);
    }
    let by = lookup.required(BY, "the time by which the feed is there, such as 09:30, or empty FEED_PAYMENTS")?;
    let payments = lookup.required(PAYMENTS, "the least number of payments of a feed, or empty FEED_BY")?;
    Ok(Some(ExpectedFeed { by, payments }))
}
