//! The log: what happened to payments, in segments that are numbered without a gap, in a table of its own.
//!
//! | item | pk | sk |
//! |---|---|---|
//! | head of the log | `LOG#HEAD` | `HEAD` |
//! | segment | `LOG#<epoch>` | its number, 12 digits |
//!
//! A segment holds the events of one of the aggregator's commits, in their order. The transaction that puts a segment also moves
//! the log's head, on condition that it is as it was read. So numbers follow each other, and a reader that finds a hole knows
//! that something is wrong. A segment can be read for 35 days at least. Whether one is older is computed from the head, which says with which
//! number each day began: a segment that is missing is never taken for one that has expired.

mod append;
mod image;
mod read;
mod segment;

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;
use payments_model::{Epoch, UtcSecond};
use serde::{Deserialize, Serialize};

pub use image::logged;
pub use read::{LogEntry, LogPage, LogPosition, LogPositionError, LogRead};
pub use segment::MAX_SEGMENT_BYTES;

use crate::attributes::Fault;
use crate::item::{item_key, key_of};
use crate::key::log_partition;
use crate::{Item, Store, StoreError};

/// The end of the partition key of the log's head, and its sort key.
const HEAD: &str = "HEAD";

/// How long a day's segments can be read, from the day's beginning: each for 35 days at least.
pub const LOG_KEPT_FOR: TimeDelta = TimeDelta::days(36);

/// After what time a segment expires, so that DynamoDB deletes it within days. One day more: the clocks of writers and readers
/// differ.
const EXPIRES_AFTER: TimeDelta = TimeDelta::days(37);

const SECONDS_OF_A_DAY: i64 = 86_400;

/// The head of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHead {
    /// The epoch that is written.
    pub epoch: Epoch,
    /// The number of the next segment of this epoch. The first is 1.
    pub next: u64,
    /// The stream whose changes the log holds: its ARN. The changes of another stream are refused.
    pub source: String,
    /// For each epoch that has ended, the number after its last segment.
    pub ended: BTreeMap<Epoch, u64>,
    /// For each day of which segments are kept (in days since 1970, UTC), the epoch and number that were next when it began.
    days: BTreeMap<i64, (Epoch, u64)>,
}

/// The attributes of the log's head.
#[derive(Debug, Serialize, Deserialize)]
struct HeadItem {
    pk: String,
    sk: String,
    epoch: u32,
    next: u64,
    source: String,
    #[serde(default)]
    ended: BTreeMap<String, u64>,
    #[serde(default)]
    days: BTreeMap<String, (u32, u64)>,
}

fn day_of(at: UtcSecond) -> i64 {
    at.as_chrono().timestamp().div_euclid(SECONDS_OF_A_DAY)
}

impl LogHead {
    /// The head of a new log of a stream.
    #[must_use]
    pub fn first(source: &str) -> Self {
        Self { epoch: Epoch::FIRST, next: 1, source: source.to_owned(), ended: BTreeMap::new(), days: BTreeMap::new() }
    }

    /// The head after one more segment, appended at `now`.
    #[must_use]
    pub fn after_append(&self, now: UtcSecond) -> Self {
        let mut head = self.clone();
        let today = day_of(now);
        head.days.entry(today).or_insert((self.epoch, self.next));
        head.days.retain(|&day, _| is_kept(day, now));
        head.next += 1;
        head
    }

    /// The oldest segment that is kept at `now`, or the next one.
    pub(crate) fn oldest(&self, now: UtcSecond) -> (Epoch, u64) {
        let kept = self.days.iter().filter(|(day, _)| is_kept(**day, now));
        kept.map(|(_, first)| *first).min().unwrap_or((self.epoch, self.next))
    }

    /// The number after the last segment of an epoch; none if the log has no such epoch.
    pub(crate) fn end_of(&self, epoch: Epoch) -> Option<u64> {
        if epoch == self.epoch { Some(self.next) } else { self.ended.get(&epoch).copied() }
    }

    /// Its attributes, without those that a later version knows.
    fn item(&self) -> Result<Item, StoreError> {
        let item = HeadItem {
            pk: log_partition(HEAD),
            sk: HEAD.to_owned(),
            epoch: self.epoch.get(),
            next: self.next,
            source: self.source.clone(),
            ended: self.ended.iter().map(|(epoch, next)| (epoch.to_string(), *next)).collect(),
            days: self.days.iter().map(|(day, (epoch, next))| (day.to_string(), (epoch.get(), *next))).collect(),
        };
        serde_dynamo::to_item(item).map_err(|error| StoreError::unreadable("(none)", "(new)", error))
    }

    fn parse(item: Item) -> Result<Self, Fault> {
        const NO_EPOCH: &str = "an epoch is at least 1";
        let item: HeadItem = serde_dynamo::from_item(item)?;
        let epoch = |number: u32| Epoch::from_stored(number).ok_or(NO_EPOCH);
        let ended = item.ended.into_iter().map(|(number, next)| Ok((epoch(number.parse()?)?, next)));
        let days = item.days.into_iter().map(|(day, (number, next))| Ok((day.parse()?, (epoch(number)?, next))));
        Ok(Self {
            epoch: epoch(item.epoch)?,
            next: item.next,
            source: item.source,
            ended: ended.collect::<Result<_, Fault>>()?,
            days: days.collect::<Result<_, Fault>>()?,
        })
    }
}

/// Whether the segments of a day are kept at `now`: those of its first second, at least.
fn is_kept(day: i64, now: UtcSecond) -> bool {
    day * SECONDS_OF_A_DAY + LOG_KEPT_FOR.num_seconds() > now.as_chrono().timestamp()
}

impl Store {
    /// Returns the log's head, strongly consistent: 1 read unit. `None` if nothing was ever written.
    pub async fn log_head(&self) -> Result<Option<LogHead>, StoreError> {
        let Some(item) = self.get(&self.tables.log, log_key()).await? else { return Ok(None) };
        let key = key_of(&item);
        LogHead::parse(item).map(Some).map_err(|fault| StoreError::unreadable(&self.tables.log, key, fault))
    }
}

fn log_key() -> Item {
    item_key(log_partition(HEAD), HEAD.to_owned())
}

fn segment_key(epoch: Epoch, number: u64) -> Item {
    item_key(log_partition(epoch), segment_sort(number))
}

fn segment_sort(number: u64) -> String {
    format!("{number:012}")
}

fn number(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

#[cfg(test)]
mod tests;
