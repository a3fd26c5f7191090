//! A stream of several shards, as DynamoDB has them; the engine has one. All changes of an item go to one shard and,
//! when that ends, to one of its children. Sequence numbers increase within a shard and from parent to child.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use chrono::{DateTime, Utc};
use payments_delivery::{InMemoryStream, Record, SequenceNumber, ShardId};
use payments_machine::layers::attributes::key_of;

/// The time of the first change, in seconds. Records' times are made up, so that windows always end at the same
/// records.
const BEGINNING: i64 = 1_796_000_000;

/// The time of the first change.
pub(crate) fn beginning() -> DateTime<Utc> {
    DateTime::from_timestamp(BEGINNING, 0).unwrap_or_default()
}

/// The seconds between two changes.
const SECONDS_BETWEEN: i64 = 4;

/// The most splits; more would leave shards empty.
const MOST_SPLITS: usize = 6;

/// A stream whose records come when a test says so.
pub(crate) struct Shards {
    pub(crate) stream: InMemoryStream,
    /// The records, and how many of them the stream shows.
    past: Vec<Record>,
    shown: usize,
    open: Vec<Open>,
    splits: usize,
    /// The sequence numbers of each shard's records.
    places: BTreeMap<ShardId, Vec<SequenceNumber>>,
}

/// An open shard, with the items whose hash has this remainder.
struct Open {
    id: ShardId,
    remainder: u64,
    modulus: u64,
}

impl Shards {
    /// Creates a stream of two empty shards.
    pub(crate) fn from_records(arn: &str, past: &[Record]) -> Result<Self> {
        let stream = InMemoryStream::new(arn);
        let mut shards =
            Self { stream, past: past.to_vec(), shown: 0, open: Vec::new(), splits: 0, places: BTreeMap::new() };
        for remainder in [0, 1] {
            let id = shards.begin(remainder, 2);
            shards.stream.add_shard(id, None)?;
        }
        Ok(shards)
    }

    fn begin(&mut self, remainder: u64, modulus: u64) -> ShardId {
        let id = ShardId::from(format!("shardId-{:020}-{remainder:08x}", self.places.len()).as_str());
        self.places.insert(id.clone(), Vec::new());
        self.open.push(Open { id: id.clone(), remainder, modulus });
        id
    }

    /// The shards so far, parents before their children.
    pub(crate) fn all(&self) -> Vec<ShardId> {
        self.places.keys().cloned().collect()
    }

    /// The sequence numbers of a shard's records.
    pub(crate) fn places(&self, shard: &ShardId) -> &[SequenceNumber] {
        self.places.get(shard).map_or(&[], Vec::as_slice)
    }

    /// Whether records are left to show.
    pub(crate) fn is_growing(&self) -> bool {
        self.shown < self.past.len()
    }

    /// Shows so many more records.
    pub(crate) fn grow(&mut self, records: usize) -> Result<()> {
        let end = self.past.len().min(self.shown + records);
        for place in self.shown..end {
            let mut event = self.past[place].event().clone();
            let number = number(place);
            event["dynamodb"]["SequenceNumber"] = number.clone().into();
            event["dynamodb"]["ApproximateCreationDateTime"] =
                (BEGINNING + SECONDS_BETWEEN * i64::try_from(place)?).into();
            let (pk, sk) = key_of(&event["dynamodb"]["Keys"]);
            let hash = pk
                .bytes()
                .chain(sk.bytes())
                .fold(7, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)).rotate_left(5));
            let open = self.open.iter().find(|open| hash % open.modulus == open.remainder).context("no shard")?;
            self.stream.push(&open.id, Record::from_event(event)?)?;
            self.places.entry(open.id.clone()).or_default().push(number.parse()?);
        }
        self.shown = end;
        Ok(())
    }

    /// Ends a shard. Two new shards replace it or, every few hours, one.
    pub(crate) fn split(&mut self, shard: usize, in_two: bool) -> Result<()> {
        if self.splits < MOST_SPLITS {
            self.splits += 1;
            let Open { id, remainder, modulus } = self.open.remove(shard % self.open.len());
            let children = if in_two {
                vec![self.begin(remainder, 2 * modulus), self.begin(remainder + modulus, 2 * modulus)]
            } else {
                vec![self.begin(remainder, modulus)]
            };
            self.stream.split(&id, &children, beginning())?;
        }
        Ok(())
    }
}

/// The n-th sequence number. Numbers increase, and grow from one digit to forty, so that neither text comparison nor
/// an integer type is right for them.
fn number(n: usize) -> String {
    if n < 9 {
        return (n + 1).to_string();
    }
    let digits = (2 + n / 4).min(payments_model::sequence_number::MAX_DIGITS);
    format!("1{n:0width$}", width = digits - 1)
}

#[test]
fn sequence_numbers_grow_to_forty_digits() -> Result<()> {
    let numbers: Vec<SequenceNumber> = (0..200).map(|n| number(n).parse()).collect::<Result<_, _>>()?;
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:#?}");
    assert_eq!((numbers[0].as_str().len(), numbers[199].as_str().len()), (1, 40));
    Ok(())
}
