//! A stream in memory, with several shards that split. The stream of an embedded engine has one shard.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};

use crate::page::{Cursor, Page, Position, ShardId, SourceError, StreamShard};
use crate::record::Record;
use payments_model::sequence_number::SequenceNumber;

/// A stream that tests push records to. Clones share it.
#[derive(Debug, Clone)]
pub struct InMemoryStream {
    arn: Arc<str>,
    shards: Arc<Mutex<Vec<Shard>>>,
    /// The number of changes of the list of shards.
    changes: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Shard {
    place: StreamShard,
    records: Vec<Record>,
    /// The time at which the shard ended, if it has.
    ended_at: Option<DateTime<Utc>>,
}

/// An operation that is impossible in a real stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InMemoryError {
    /// The shard exists already.
    #[error("shard {0} exists already")]
    ShardExists(ShardId),
    /// The shard is unknown.
    #[error("there is no shard {0}")]
    NoShard(ShardId),
    /// The shard has ended.
    #[error("shard {0} is closed")]
    Closed(ShardId),
    /// The sequence number is not above that of the record before it.
    #[error("sequence number {0} is not above the last one of the shard")]
    Order(SequenceNumber),
}

impl InMemoryStream {
    /// Creates a stream without shards.
    pub fn new(arn: &str) -> Self {
        Self { arn: arn.into(), shards: Arc::default(), changes: Arc::default() }
    }

    /// Returns the stream's ARN.
    pub fn arn(&self) -> &str {
        &self.arn
    }

    /// Adds an open shard. A parent that does not exist counts as trimmed.
    pub fn add_shard(&self, id: ShardId, parent: Option<ShardId>) -> Result<(), InMemoryError> {
        let mut shards = self.lock();
        if shards.iter().any(|shard| shard.place.id == id) {
            return Err(InMemoryError::ShardExists(id));
        }
        shards.push(Shard { place: StreamShard { id, parent }, records: Vec::new(), ended_at: None });
        self.changes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Adds a record at the end of a shard.
    pub fn push(&self, id: &ShardId, record: Record) -> Result<(), InMemoryError> {
        let mut shards = self.lock();
        let shard = find(&mut shards, id)?;
        if shard.ended_at.is_some() {
            return Err(InMemoryError::Closed(id.clone()));
        }
        if shard.records.last().is_some_and(|last| last.sequence_number() >= record.sequence_number()) {
            return Err(InMemoryError::Order(record.sequence_number().clone()));
        }
        shard.records.push(record);
        Ok(())
    }

    /// Ends a shard at an instant; `children` continue it.
    pub fn split(&self, id: &ShardId, children: &[ShardId], at: DateTime<Utc>) -> Result<(), InMemoryError> {
        find(&mut self.lock(), id)?.ended_at = Some(at);
        children.iter().try_for_each(|child| self.add_shard(child.clone(), Some(id.clone())))
    }

    /// Removes the records that were created before an instant, and the shards that ended before it and are empty then. DynamoDB
    /// keeps both for 24 hours (*Amazon DynamoDB Developer Guide*, "Change data capture for DynamoDB Streams": "data in
    /// DynamoDB Streams is subject to a 24-hour lifetime"). So a shard that never had a record stays between those before and after it,
    /// and their order is known. Returns how many records were removed.
    pub fn trim_before(&self, instant: DateTime<Utc>) -> usize {
        let (mut shards, mut trimmed) = (self.lock(), 0);
        for shard in shards.iter_mut() {
            // Records are in the order of their creation, but for clocks that were set back: those wait for the one before.
            let kept = shard.records.iter().position(|record| record.created_at() >= instant);
            trimmed += shard.records.drain(..kept.unwrap_or(shard.records.len())).count();
        }
        shards.retain(|shard| shard.ended_at.is_none_or(|at| at >= instant) || !shard.records.is_empty());
        self.changes.fetch_add(1, Ordering::Relaxed);
        trimmed
    }

    /// Returns how often the list of shards has changed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    pub(crate) fn shards(&self) -> Vec<StreamShard> {
        self.lock().iter().map(|shard| shard.place.clone()).collect()
    }

    pub(crate) fn read(&self, id: &ShardId, cursor: &mut Cursor, limit: usize) -> Result<Page, SourceError> {
        let mut shards = self.lock();
        let shard = find(&mut shards, id).map_err(|_| SourceError::NoShard(id.clone()))?;
        let start = match &cursor.position {
            Position::TrimHorizon => 0,
            Position::At(number) => shard.records.partition_point(|record| record.sequence_number() < number),
            Position::After(number) => shard.records.partition_point(|record| record.sequence_number() <= number),
        };
        let end = shard.records.len().min(start + limit);
        let records = shard.records[start..end].to_vec();
        if let Some(last) = records.last() {
            cursor.position = Position::After(last.sequence_number().clone());
        }
        Ok(Page { records, closed: shard.ended_at.is_some() && end == shard.records.len() })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Shard>> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find<'a>(shards: &'a mut [Shard], id: &ShardId) -> Result<&'a mut Shard, InMemoryError> {
    shards.iter_mut().find(|shard| shard.place.id == *id).ok_or_else(|| InMemoryError::NoShard(id.clone()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(number: u64) -> Record {
        let change = json!({"SequenceNumber": number.to_string(), "ApproximateCreationDateTime": 1_796_000_000});
        Record::from_event(json!({"dynamodb": change})).unwrap()
    }

    fn numbers(page: &Page) -> Vec<&str> {
        page.records.iter().map(|record| record.sequence_number().as_str()).collect()
    }

    #[test]
    fn a_shard_is_read_from_any_position() {
        let stream = InMemoryStream::new("arn");
        let id = ShardId::from("a");
        stream.add_shard(id.clone(), None).unwrap();
        for number in [1, 3, 5, 7, 9] {
            stream.push(&id, record(number)).unwrap();
        }
        let at = |number: u64| Position::At(number.into());
        let after = |number: u64| Position::After(number.into());
        for (position, first, second) in [
            (Position::TrimHorizon, vec!["1", "3"], vec!["5", "7"]),
            (at(3), vec!["3", "5"], vec!["7", "9"]),
            (at(4), vec!["5", "7"], vec!["9"]),
            (after(3), vec!["5", "7"], vec!["9"]),
            (after(9), vec![], vec![]),
        ] {
            let mut cursor = Cursor::at(position);
            assert_eq!(numbers(&stream.read(&id, &mut cursor, 2).unwrap()), first);
            assert_eq!(numbers(&stream.read(&id, &mut cursor, 2).unwrap()), second);
        }
    }

    #[test]
    fn a_split_ends_a_shard() {
        let stream = InMemoryStream::new("arn");
        let a = ShardId::from("a");
        let b = ShardId::from("b");
        let c = ShardId::from("c");
        stream.add_shard(a.clone(), None).unwrap();
        stream.push(&a, record(1)).unwrap();
        stream.split(&a, &[b.clone(), c], DateTime::UNIX_EPOCH).unwrap();
        assert_eq!(stream.push(&a, record(2)), Err(InMemoryError::Closed(a.clone())));
        assert_eq!(stream.add_shard(b.clone(), None), Err(InMemoryError::ShardExists(b)));
        let parents: Vec<_> = stream.shards().into_iter().map(|shard| shard.parent).collect();
        assert_eq!(parents, [None, Some(a.clone()), Some(a.clone())]);
        let mut cursor = Cursor::at(Position::TrimHorizon);
        assert!(stream.read(&a, &mut cursor, 9).unwrap().closed);
    }

    #[test]
    fn what_was_trimmed_is_gone_and_a_reader_goes_on_with_the_oldest_record() {
        let created = |number: u64, seconds: i64| {
            let change = json!({"SequenceNumber": number.to_string(), "ApproximateCreationDateTime": seconds});
            Record::from_event(json!({ "dynamodb": change })).unwrap()
        };
        let stream = InMemoryStream::new("arn");
        let (a, b) = (ShardId::from("a"), ShardId::from("b"));
        stream.add_shard(a.clone(), None).unwrap();
        for (number, seconds) in [(1, 10), (3, 20), (5, 30)] {
            stream.push(&a, created(number, seconds)).unwrap();
        }
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        let mut behind = Cursor::at(Position::After(1.into()));
        assert_eq!(stream.trim_before(at(10)), 0);
        assert_eq!(stream.trim_before(at(30)), 2);
        assert_eq!(numbers(&stream.read(&a, &mut behind, 9).unwrap()), ["5"]);
        let mut first = Cursor::at(Position::TrimHorizon);
        assert_eq!(numbers(&stream.read(&a, &mut first, 9).unwrap()), ["5"]);
        // A shard without records stays open.
        assert_eq!(stream.trim_before(at(31)), 1);
        assert_eq!(numbers(&stream.read(&a, &mut first, 9).unwrap()), [""; 0]);
        stream.push(&a, created(7, 40)).unwrap();
        assert_eq!(numbers(&stream.read(&a, &mut first, 9).unwrap()), ["7"]);
        // One that has ended goes with its last record.
        stream.split(&a, std::slice::from_ref(&b), at(40)).unwrap();
        stream.trim_before(at(40));
        assert_eq!(stream.shards().len(), 2);
        stream.trim_before(at(41));
        assert_eq!(stream.shards(), [StreamShard { id: b, parent: Some(a.clone()) }]);
        assert!(stream.read(&a, &mut first, 9).is_err());
    }

    #[test]
    fn a_shard_that_ends_without_records_is_listed_as_long_as_one_with_records() {
        let stream = InMemoryStream::new("arn");
        let [a, b, c] = ["a", "b", "c"].map(ShardId::from);
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        stream.add_shard(a.clone(), None).unwrap();
        stream.push(&a, record(1)).unwrap();
        let (first, later) = (at(1_796_000_000), at(1_796_000_060));
        stream.split(&a, std::slice::from_ref(&b), first).unwrap();
        stream.split(&b, std::slice::from_ref(&c), later).unwrap();
        let listed = || stream.shards().into_iter().map(|shard| shard.id).collect::<Vec<_>>();
        for (before, want) in [(first, &[&a, &b, &c][..]), (later, &[&b, &c]), (at(1_796_000_061), &[&c])] {
            stream.trim_before(before);
            assert_eq!(listed().iter().collect::<Vec<_>>(), want, "{before}");
        }
    }

    #[test]
    fn a_sequence_number_out_of_order_is_an_error() {
        let stream = InMemoryStream::new("arn");
        let id = ShardId::from("a");
        stream.add_shard(id.clone(), None).unwrap();
        stream.push(&id, record(10)).unwrap();
        assert_eq!(stream.push(&id, record(9)), Err(InMemoryError::Order(9.into())));
        let other = ShardId::from("b");
        assert_eq!(stream.push(&other, record(11)), Err(InMemoryError::NoShard(other.clone())));
    }
}
