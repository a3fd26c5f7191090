//! The aggregator's writes: counters and their stream shard's checkpoint, in one transaction.
//!
//! The transaction fails unless the checkpoint is where its reader saw it. So every record counts exactly once.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem, Update};
use chrono::TimeDelta;
use payments_model::sequence_number::SequenceNumberError;
use payments_model::{BusinessDate, DayCounts, SequenceNumber, UtcSecond};

use crate::conditional::is_conflict_from;
use crate::counters::date_counters::{MOVES, attributes, counter_key};
use crate::error::StoreError;
use crate::item::{Item, item_key, key_of, text_of};
use crate::key::{Lane, checkpoint_partition};
use crate::log::head::LogHead;
use crate::store::Store;

/// The owner of the checkpoints.
pub(crate) const CONSUMER: &str = "counts";

/// The most dates of one commit: a transaction takes 100 actions, and the checkpoint, the log's segment and its head are three.
pub const MAX_DATES_PER_COMMIT: usize = 97;

/// The most sums of one date and commit. Each is `#nnn :nnn,` in an expression, 10 bytes; with the
/// eight other numbers that is 2.7 KB of the 4 KB that an expression may have.
pub const MAX_SUMS_PER_DATE: usize = 250;

/// Time for which a checkpoint is kept after its last use. The stream keeps records for a day, so
/// no record can arrive again after that.
const KEPT_FOR: TimeDelta = TimeDelta::days(7);

/// The counters' change by consecutive records of a stream shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountsCommit {
    /// The change of each date.
    pub deltas: BTreeMap<BusinessDate, DayCounts>,
    /// Records whose date could not be read.
    pub unparsed: u64,
    /// The events of the records, as JSON: at most [`MAX_SEGMENT_BYTES`](crate::log::segment::MAX_SEGMENT_BYTES), each with a line break.
    pub events: Vec<String>,
    /// The last of the records: the new checkpoint.
    pub last: SequenceNumber,
}

/// The result of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// Counters and checkpoint have changed.
    Done,
    /// The checkpoint is not the expected one. Nothing has changed.
    Elsewhere,
    /// The log's head is not the expected one, or is being written: another stream shard appends to it. Nothing has changed.
    LogMoved,
}

impl Store {
    /// Returns the last counted record of a stream shard: 1 read unit.
    pub async fn checkpoint(&self, stream_shard: &str) -> Result<Option<SequenceNumber>, StoreError> {
        let Some(item) = self.get(&self.tables.payments, checkpoint_key(stream_shard)).await? else { return Ok(None) };
        let unreadable =
            |error: SequenceNumberError| StoreError::unreadable(&self.tables.payments, key_of(&item), error);
        text_of(&item, "sequenceNumber").parse().map(Some).map_err(unreadable)
    }

    /// Adds to the counters of the shard's lane, moves its checkpoint from `expected`, and appends its events to the
    /// log whose head is given, all or nothing: 2 write units per KB of each counter, 2 for the checkpoint, and if
    /// there are events 2 for each KB of their compressed segment, and 2 for the log's head.
    ///
    /// # Errors
    /// [`StoreError`] if DynamoDB fails. [`StoreError::Throttled`] also if another shard commits to
    /// one of the counters at the same time.
    pub async fn commit_counts(
        &self,
        stream_shard: &str,
        expected: Option<&SequenceNumber>,
        commit: &CountsCommit,
        log: &LogHead,
        now: UtcSecond,
    ) -> Result<Committed, StoreError> {
        let lane = Lane::for_stream_shard(stream_shard);
        let mut actions = vec![self.move_checkpoint(stream_shard, expected, commit, now)];
        let dates = commit.deltas.iter().filter(|(_, counts)| !counts.is_zero());
        actions.extend(dates.map(|(date, counts)| self.add_to_counter(lane, *date, counts)));
        let actions = actions.into_iter().map(|update| Ok(TransactWriteItem::builder().update(update?).build()));
        let mut actions: Vec<_> = actions.collect();
        let has_events = !commit.events.is_empty();
        if has_events {
            actions.extend(self.append_to_log(log, &commit.events, now)?);
        }
        // The log's segment and head come last.
        let of_log = actions.len().saturating_sub(2);
        let transacted = match self.transact(actions.into_iter().collect()).await {
            Err(error) if has_events && is_conflict_from(&error, of_log) => return Ok(Committed::LogMoved),
            transacted => transacted?,
        };
        Ok(match transacted {
            Ok(()) => Committed::Done,
            // The checkpoint comes first. Counters have no condition.
            Err(0) => Committed::Elsewhere,
            Err(_) => Committed::LogMoved,
        })
    }

    fn move_checkpoint(
        &self,
        stream_shard: &str,
        expected: Option<&SequenceNumber>,
        commit: &CountsCommit,
        now: UtcSecond,
    ) -> Result<Update, BuildError> {
        let text = |text: String| AttributeValue::S(text);
        let number = |number: String| AttributeValue::N(number);
        let expires = now.as_chrono() + KEPT_FOR;
        let update = Update::builder()
            .table_name(&self.tables.payments)
            .set_key(Some(checkpoint_key(stream_shard)))
            .update_expression(
                "SET sequenceNumber = :last, updatedAt = :now, expires_at = :expires ADD unparsed :unparsed",
            )
            .expression_attribute_values(":last", text(commit.last.to_string()))
            .expression_attribute_values(":now", text(now.to_string()))
            .expression_attribute_values(":expires", number(expires.timestamp().to_string()))
            .expression_attribute_values(":unparsed", number(commit.unparsed.to_string()));
        match expected {
            None => update.condition_expression("attribute_not_exists(pk)"),
            Some(expected) => update
                .condition_expression("sequenceNumber = :expected")
                .expression_attribute_values(":expected", text(expected.to_string())),
        }
        .build()
    }

    /// Adds numbers to a counter, which is created if it does not exist.
    pub(crate) fn add_to_counter(
        &self,
        lane: Lane,
        date: BusinessDate,
        counts: &DayCounts,
    ) -> Result<Update, BuildError> {
        let moves = (MOVES.to_owned(), AttributeValue::N("1".to_owned()));
        let (expression, names, values) = addition(attributes(counts).into_iter().chain([moves]));
        Update::builder()
            .table_name(&self.tables.payments)
            .set_key(Some(counter_key(lane, date)))
            .update_expression(expression)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .build()
    }
}

/// An `ADD` of numbers: its expression, names and values.
fn addition(
    attributes: impl Iterator<Item = (String, AttributeValue)>,
) -> (String, HashMap<String, String>, HashMap<String, AttributeValue>) {
    let mut terms = Vec::new();
    let mut names = HashMap::new();
    let mut values = HashMap::new();
    for (place, (name, value)) in attributes.enumerate() {
        terms.push(format!("#{place} :{place}"));
        names.insert(format!("#{place}"), name);
        values.insert(format!(":{place}"), value);
    }
    (format!("ADD {}", terms.join(",")), names, values)
}

pub(crate) fn checkpoint_key(stream_shard: &str) -> Item {
    item_key(checkpoint_partition(CONSUMER), stream_shard.to_owned())
}

#[cfg(test)]
mod tests {
    use payments_model::{Currency, Status};

    use super::*;

    #[test]
    fn the_longest_expression_fits_dynamodbs_limit() {
        let mut counts = DayCounts::default();
        (counts.archived, counts.unparsed) = (1, 1);
        Status::ALL.into_iter().for_each(|status| counts.shift(status, 1));
        let codes = (b'A'..=b'Z').flat_map(|a| (b'A'..=b'B').map(move |b| [b'X', a, b]));
        for code in codes {
            let currency = Currency::from_stored(std::str::from_utf8(&code).unwrap()).unwrap();
            for status in Status::ALL {
                if counts.sum_count() < MAX_SUMS_PER_DATE {
                    counts.shift_sum(currency, status, 1);
                }
            }
        }
        assert_eq!(counts.sum_count(), MAX_SUMS_PER_DATE);
        let (expression, ..) = addition(attributes(&counts).into_iter());
        assert!(expression.len() <= 4_096, "{} bytes", expression.len());
    }
}
