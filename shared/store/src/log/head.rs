//! The head of the log: its epoch, the number of the next segment, and the day of each kept segment.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta};
use payments_model::{Epoch, UtcSecond};
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::item::{Fault, Item, item_key, key_of};
use crate::key::log_partition;
use crate::log::position::LogPosition;
use crate::store::Store;

/// The end of the partition key of the log's head, and its sort key.
pub(crate) const HEAD: &str = "HEAD";

/// The source of a log whose epoch is to end: it takes the changes of no stream.
pub(super) const NO_SOURCE: &str = "none";

/// Time for which a day's segments can be read, from the day's beginning: each for at least 35 days.
pub const LOG_KEPT_FOR: TimeDelta = TimeDelta::days(36);

const SECONDS_OF_A_DAY: i64 = 86_400;

/// The head of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHead {
    /// The epoch that is written.
    pub epoch: Epoch,
    /// The number of the next segment of this epoch. The first is 1.
    pub next: u64,
    /// The stream whose changes the log holds: its ARN. Changes of other streams are rejected.
    pub source: String,
    /// For each epoch that has ended, the number after its last segment.
    pub ended: BTreeMap<Epoch, u64>,
    /// The loss that is not marked yet.
    pub missed: Option<Missed>,
    /// For each day of which segments are kept (in days since 1970, UTC), the epoch and number that were next when it began.
    pub(super) days: BTreeMap<i64, (Epoch, u64)>,
}

/// Changes that are not in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed {
    /// The time of the first of them. Known for changes that a restore may have lost, but not for
    /// changes that the counters lack, too.
    pub since: Option<UtcSecond>,
    /// The time at which the last of them was counted, or was found to be missing.
    pub until: UtcSecond,
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
    #[serde(rename = "missedSince", skip_serializing_if = "Option::is_none")]
    missed_since: Option<String>,
    #[serde(rename = "missedUntil", skip_serializing_if = "Option::is_none")]
    missed_until: Option<String>,
}

pub(super) fn day_of(at: UtcSecond) -> i64 {
    at.as_chrono().timestamp().div_euclid(SECONDS_OF_A_DAY)
}

impl LogHead {
    /// The head of a log of a stream that begins at `now`.
    #[must_use]
    pub fn first(source: &str, now: UtcSecond) -> Self {
        Self {
            epoch: Epoch::begun_at(now),
            next: 1,
            source: source.to_owned(),
            ended: BTreeMap::new(),
            missed: None,
            days: BTreeMap::new(),
        }
    }

    /// Whether the head was never written. The head of a lost log is written before anything is appended.
    pub(super) fn is_unwritten(&self) -> bool {
        self.next == 1 && self.ended.is_empty() && self.source != NO_SOURCE
    }

    /// The head after one more segment, appended at `now`. The segment marks the loss.
    #[must_use]
    pub fn after_append(&self, now: UtcSecond) -> Self {
        let mut head = Self { missed: None, ..self.clone() };
        let today = day_of(now);
        // A clock that is behind begins a day after a later one: the segments between them may be of both.
        let first = head.first_since(today).unwrap_or((self.epoch, self.next));
        head.days.entry(today).or_insert(first);
        head.days.retain(|&day, _| is_kept(day, now));
        head.next += 1;
        head
    }

    /// The place where the day of an instant began in the log, or that of an earlier day; if no
    /// such segment is kept, the oldest one.
    #[must_use]
    pub fn day_before(&self, at: UtcSecond) -> LogPosition {
        let earlier = self.days.range(..=day_of(at)).next_back().map_or(i64::MIN, |(day, _)| *day);
        let (epoch, number) = self.first_since(earlier).unwrap_or((self.epoch, self.next));
        LogPosition { epoch, number, offset: 0 }
    }

    /// The first place of the days after that of an instant, or the log's end.
    pub(super) fn day_after(&self, at: UtcSecond) -> LogPosition {
        let (epoch, number) = self.first_since(day_of(at) + 1).unwrap_or((self.epoch, self.next));
        LogPosition { epoch, number, offset: 0 }
    }

    /// The first place of a day and all later ones. Clocks differ, so a later day may have begun before an earlier one.
    fn first_since(&self, day: i64) -> Option<(Epoch, u64)> {
        self.days.range(day..).map(|(_, first)| *first).min()
    }

    /// Whether the log had segments before the day of an instant, and at `now` keeps all since
    /// then. If not, the events of its first segment say when the log began.
    #[must_use]
    pub fn covers(&self, at: UtcSecond, now: UtcSecond) -> bool {
        let first = LogPosition { epoch: self.first_epoch(), number: 1, offset: 0 };
        is_kept(day_of(at), now) && self.day_before(at).max(self.start(now)) > first
    }

    /// The first epoch that ever had a segment. A lost log has an earlier epoch without segments.
    pub(super) fn first_epoch(&self) -> Epoch {
        self.ended.iter().find(|(_, end)| **end > 1).map_or(self.epoch, |(epoch, _)| *epoch)
    }

    /// The oldest segment that is kept at `now`, or the next one.
    pub(crate) fn oldest(&self, now: UtcSecond) -> (Epoch, u64) {
        let kept = self.days.iter().filter(|(day, _)| is_kept(**day, now));
        kept.map(|(_, first)| *first).min().unwrap_or((self.epoch, self.next))
    }

    /// The number after the last segment of an epoch; `None` if the log has no such epoch.
    #[must_use]
    pub fn end_of(&self, epoch: Epoch) -> Option<u64> {
        if epoch == self.epoch { Some(self.next) } else { self.ended.get(&epoch).copied() }
    }

    /// The epoch after one that has ended.
    #[must_use]
    pub fn epoch_after(&self, epoch: Epoch) -> Epoch {
        self.ended.keys().copied().find(|ended| *ended > epoch).unwrap_or(self.epoch)
    }

    /// The day of the segment after a place, by its first instant, and the instant from which that segment is no longer kept. `None`
    /// if the log keeps no such day.
    #[must_use]
    pub fn kept_at(&self, place: LogPosition) -> Option<(UtcSecond, UtcSecond)> {
        let begun = self.days.iter().filter(|(_, first)| **first <= (place.epoch, place.number)).map(|(day, _)| *day);
        // A place before all days has the first day after it.
        let day = begun.max().or_else(|| self.days.keys().next().copied())?;
        let began = DateTime::from_timestamp(day * SECONDS_OF_A_DAY, 0).and_then(|at| UtcSecond::new(at).ok())?;
        Some((began, began.saturating_add(LOG_KEPT_FOR)))
    }

    /// The number of segments after a place. Without the place in the log, its segments are not
    /// counted; 1 if the log ends before the place, which is a fault that must show.
    #[must_use]
    pub fn segments_after(&self, at: LogPosition) -> u64 {
        if at > self.end() {
            return 1;
        }
        let ended = self.ended.range(at.epoch..).map(|(epoch, end)| (*epoch, *end));
        let epochs = ended.chain([(self.epoch, self.next)]);
        epochs.map(|(epoch, end)| end.saturating_sub(if epoch == at.epoch { at.number } else { 1 })).sum()
    }

    /// Its attributes, without those that only a later version knows.
    pub(super) fn item(&self) -> Result<Item, StoreError> {
        let item = HeadItem {
            pk: log_partition(HEAD),
            sk: HEAD.to_owned(),
            epoch: self.epoch.get(),
            next: self.next,
            source: self.source.clone(),
            ended: self.ended.iter().map(|(epoch, next)| (epoch.to_string(), *next)).collect(),
            days: self.days.iter().map(|(day, (epoch, next))| (day.to_string(), (epoch.get(), *next))).collect(),
            missed_since: self.missed.and_then(|missed| missed.since).map(|since| since.to_string()),
            missed_until: self.missed.map(|missed| missed.until.to_string()),
        };
        serde_dynamo::to_item(item).map_err(|error| StoreError::unreadable("(none)", "(new)", error))
    }

    fn parse(item: Item) -> Result<Self, Fault> {
        const NO_EPOCH: &str = "an epoch is at least 1";
        let item: HeadItem = serde_dynamo::from_item(item)?;
        let epoch = |number: u32| Epoch::from_stored(number).ok_or(NO_EPOCH);
        let ended = item.ended.into_iter().map(|(number, next)| Ok((epoch(number.parse()?)?, next)));
        let days = item.days.into_iter().map(|(day, (number, next))| Ok((day.parse()?, (epoch(number)?, next))));
        let instant = |text: Option<String>| text.map(|text| text.parse()).transpose();
        let since: Option<UtcSecond> = instant(item.missed_since)?;
        let missed = instant(item.missed_until)?.map(|until| Missed { since, until });
        Ok(Self {
            epoch: epoch(item.epoch)?,
            next: item.next,
            source: item.source,
            ended: ended.collect::<Result<_, Fault>>()?,
            missed,
            days: days.collect::<Result<_, Fault>>()?,
        })
    }
}

/// Whether the segments of a day are kept at `now`: those of its first second, at least.
pub(super) fn is_kept(day: i64, now: UtcSecond) -> bool {
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

pub(super) fn log_key() -> Item {
    item_key(log_partition(HEAD), HEAD.to_owned())
}

#[cfg(test)]
mod tests;
