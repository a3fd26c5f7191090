//! Reading: strongly consistent, in the order of the numbers, across epochs.

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::{Epoch, UtcSecond};

use crate::error::{StoreError, failed};
use crate::item::{Item, key_of, text_of};
use crate::key::log_partition;
use crate::log::head::LogHead;
use crate::log::position::LogPosition;
use crate::log::segment;
use crate::log::segment::segment_sort;
use crate::store::Store;

/// An event, and the place after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// The event's JSON, as it was written.
    pub json: String,
    /// The place after it.
    pub after: LogPosition,
}

/// Some events that follow a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPage {
    /// The events.
    pub entries: Vec<LogEntry>,
    /// The place after them.
    pub after: LogPosition,
    /// Whether the log ended there when it was read.
    pub is_end: bool,
}

/// The result of reading after a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogRead {
    /// Events; empty if the log ends there.
    Page(LogPage),
    /// The segments there have expired. This is the oldest place.
    Expired(LogPosition),
    /// The log never had the place: it ended before, and a restore began a new epoch, or the place
    /// is invented. This is its end.
    Beyond(LogPosition),
}

/// The part of a segment that a page has taken.
enum Taken {
    /// All events after the position.
    Whole,
    /// As much as the page had room for.
    Part,
    /// No event: the position is beyond the segment's end.
    Shorter,
}

impl LogHead {
    /// The place after the last event.
    #[must_use]
    pub fn end(&self) -> LogPosition {
        LogPosition::start_of(self.epoch, self.next)
    }

    /// Whether the log has the events after a place at `now`.
    #[must_use]
    pub fn has(&self, place: LogPosition, now: UtcSecond) -> bool {
        place >= self.start(now) && self.end_of(place.epoch).is_some_and(|end| place.number <= end)
    }

    /// Whether `start` is the beginning of the log, so that nothing has expired.
    fn is_whole_from(&self, start: LogPosition) -> bool {
        start == LogPosition::start_of(self.first_epoch(), 1)
    }

    /// The place after the segment of a place, which is a hole. `None` at the end of the log.
    #[must_use]
    pub fn after_hole(&self, place: LogPosition) -> Option<LogPosition> {
        let next = LogPosition::start_of(place.epoch, place.number + 1);
        let is_end = self.end_of(place.epoch).is_none_or(|end| next.number >= end);
        if is_end && place.epoch == self.epoch {
            return None;
        }
        Some(if is_end { LogPosition::start_of(self.epoch_after(place.epoch), 1) } else { next })
    }

    /// The place, or the beginning of the next epoch if it is the end of one.
    fn next_after(&self, place: LogPosition) -> LogPosition {
        let is_end = place.epoch < self.epoch && self.end_of(place.epoch) == Some(place.number) && place.offset == 0;
        if is_end { LogPosition::start_of(self.epoch_after(place.epoch), 1) } else { place }
    }

    /// The oldest place that is kept at `now`.
    #[must_use]
    pub fn start(&self, now: UtcSecond) -> LogPosition {
        let (epoch, number) = self.oldest(now);
        LogPosition::start_of(epoch, number)
    }
}

impl Store {
    /// Returns up to `limit` events after a place, of at most `segments` segments of one epoch: 1 read unit for each 4
    /// KB of them. `head` was read before, so all segments that it counts exist.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`] if a segment that cannot have expired is missing, or cannot be
    /// read: readers must stop there.
    pub async fn log_page(
        &self,
        head: &LogHead,
        after: LogPosition,
        limit: usize,
        segments: u8,
        now: UtcSecond,
    ) -> Result<LogRead, StoreError> {
        let (start, end) = (head.start(now), head.end());
        let after = if after == LogPosition::BEGINNING && head.is_whole_from(start) { start } else { after };
        if after < start && head.next_after(after) < start {
            return Ok(LogRead::Expired(start));
        }
        let Some(end_of_epoch) = head.end_of(after.epoch) else { return Ok(LogRead::Beyond(end)) };
        if (after.number, after.offset) > (end_of_epoch, 0) {
            return Ok(LogRead::Beyond(end));
        }
        let mut page = LogPage { entries: Vec::new(), after, is_end: false };
        if after.number < end_of_epoch {
            let last = end_of_epoch.min(after.number + u64::from(segments)) - 1;
            for item in self.log_segments(after.epoch, after.number, last).await? {
                match self.take_segment(&mut page, &item, limit) {
                    Ok(Taken::Whole) => {}
                    // Readers get the events before a hole, and find the hole at the next read.
                    Err(_) if !page.entries.is_empty() => return Ok(LogRead::Page(page)),
                    Ok(Taken::Part) => return Ok(LogRead::Page(page)),
                    Ok(Taken::Shorter) => return Ok(LogRead::Beyond(end)),
                    Err(hole) => return Err(hole),
                }
            }
        }
        if page.after.number == end_of_epoch && page.after.epoch < head.epoch {
            page.after = LogPosition::start_of(head.epoch_after(page.after.epoch), 1);
        }
        page.is_end = page.after == end;
        Ok(LogRead::Page(page))
    }

    /// Adds a segment's events to a page.
    fn take_segment(&self, page: &mut LogPage, item: &Item, limit: usize) -> Result<Taken, StoreError> {
        let at = page.after;
        let unreadable = |why: &str| StoreError::unreadable(&self.tables.log, key_of(item), why);
        if text_of(item, "sk") != segment_sort(at.number) {
            let missing = format!("{} / {}", log_partition(at.epoch), segment_sort(at.number));
            return Err(StoreError::unreadable(
                &self.tables.log,
                missing,
                "the log has a hole here; see docs/alarms.md, ApiErrors",
            ));
        }
        let events = segment::events_of(item).map_err(|fault| unreadable(&fault.to_string()))?;
        let skipped = usize::try_from(at.offset).unwrap_or(usize::MAX);
        if skipped > events.len() {
            return Ok(Taken::Shorter);
        }
        for json in events.into_iter().skip(skipped) {
            if page.entries.len() == limit {
                return Ok(Taken::Part);
            }
            page.after.offset += 1;
            page.entries.push(LogEntry { json, after: page.after });
        }
        page.after = LogPosition::start_of(at.epoch, at.number + 1);
        if let Some(last) = page.entries.last_mut() {
            last.after = page.after;
        }
        Ok(Taken::Whole)
    }

    /// Returns the segments of an epoch from `first` to `last` as far as one call brings them, at least the first.
    async fn log_segments(&self, epoch: Epoch, first: u64, last: u64) -> Result<Vec<Item>, StoreError> {
        let query = self
            .client
            .query()
            .table_name(&self.tables.log)
            .key_condition_expression("pk = :pk AND sk BETWEEN :first AND :last")
            .expression_attribute_values(":pk", AttributeValue::S(log_partition(epoch)))
            .expression_attribute_values(":first", AttributeValue::S(segment_sort(first)))
            .expression_attribute_values(":last", AttributeValue::S(segment_sort(last)))
            .consistent_read(true);
        let items = query.send().await.map_err(failed("Query"))?.items.unwrap_or_default();
        if items.is_empty() {
            let missing = format!("{} / {}", log_partition(epoch), segment_sort(first));
            return Err(StoreError::unreadable(
                &self.tables.log,
                missing,
                "the log has a hole here; see docs/alarms.md, ApiErrors",
            ));
        }
        Ok(items)
    }
}
