//! The place in the log at a time: a binary search over the segments of a day.

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;
use payments_model::{Epoch, UtcSecond};

use crate::error::{StoreError, failed};
use crate::item::text_of;
use crate::key::log_partition;
use crate::log::head::{LogHead, day_of, is_kept};
use crate::log::position::LogPosition;
use crate::log::segment::segment_sort;
use crate::store::Store;

/// Largest difference between the clocks of two writers. A reader that begins at a time begins so much earlier, and gets some
/// events more.
pub const CLOCKS_DIFFER: TimeDelta = TimeDelta::minutes(1);

impl LogHead {
    /// The segments from one place to another, as ranges of numbers in each epoch, in order.
    fn ranges(&self, from: LogPosition, to: LogPosition) -> Vec<(Epoch, u64, u64)> {
        let mut ranges = Vec::new();
        let mut epoch = from.epoch;
        while epoch <= to.epoch {
            let first = if epoch == from.epoch { from.number } else { 1 };
            let end = if epoch == to.epoch { to.number } else { self.end_of(epoch).unwrap_or(first) };
            ranges.push((epoch, first, end.max(first)));
            let next = self.epoch_after(epoch);
            if next <= epoch {
                break;
            }
            epoch = next;
        }
        ranges
    }
}

impl Store {
    /// Returns the place before the events that the log got since a time, and before some of the minute before it. `None` if the
    /// log no longer keeps that day. A binary search: for a million segments a day, 20 reads of a segment each.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`] if a segment that cannot have expired is missing, or has no time.
    pub async fn log_place_at(
        &self,
        head: &LogHead,
        at: UtcSecond,
        now: UtcSecond,
    ) -> Result<Option<LogPosition>, StoreError> {
        if !is_kept(day_of(at), now) {
            return Ok(None);
        }
        let since = at.saturating_add(-CLOCKS_DIFFER);
        let first = head.day_before(since).max(head.start(now));
        let ranges = head.ranges(first, head.day_after(at).max(first));
        let search = async {
            let (mut low, mut high) = (0, ranges.iter().map(|(_, first, end)| end - first).sum());
            while low < high {
                let middle = low + (high - low) / 2;
                let place = place_in(&ranges, middle, head);
                if self.segment_time(place).await? < since { low = middle + 1 } else { high = middle }
            }
            Ok(Some(place_in(&ranges, low, head)))
        };
        self.bounded("Query", search).await
    }

    /// The time at which a segment was appended.
    async fn segment_time(&self, place: LogPosition) -> Result<UtcSecond, StoreError> {
        let (partition, sort) = (log_partition(place.epoch), segment_sort(place.number));
        let query = self
            .client
            .query()
            .table_name(&self.tables.log)
            .key_condition_expression("pk = :pk AND sk = :sk")
            .expression_attribute_values(":pk", AttributeValue::S(partition.clone()))
            .expression_attribute_values(":sk", AttributeValue::S(sort.clone()))
            .projection_expression("#at")
            .expression_attribute_names("#at", "at")
            .consistent_read(true);
        let items = query.send().await.map_err(failed("Query"))?.items.unwrap_or_default();
        let at = items.first().and_then(|item| text_of(item, "at").parse().ok());
        at.ok_or_else(|| {
            let why = "the log has a hole here, or the segment has no time; see docs/alarms.md, ApiErrors";
            StoreError::unreadable(&self.tables.log, format!("{partition} / {sort}"), why)
        })
    }
}

/// The place before the segment of this index in the ranges; after the last one, the place after it.
fn place_in(ranges: &[(Epoch, u64, u64)], index: u64, head: &LogHead) -> LogPosition {
    let mut left = index;
    for (epoch, first, end) in ranges {
        if left < end - first {
            return LogPosition::start_of(*epoch, first + left);
        }
        left -= end - first;
    }
    ranges.last().map_or(head.end(), |(epoch, _, end)| LogPosition::start_of(*epoch, *end))
}
