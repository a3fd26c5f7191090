//! The shards of a stream: the engine has one, DynamoDB has many. All changes of an item go to one
//! shard and, when that ends, to one of its children; each shard's numbers go up, and parents' are
//! below their children's.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use chrono::{DateTime, Utc};
use payments_delivery::{InMemoryStream, Record, SequenceNumber, ShardId};

use crate::staleness::key_of;

/// When the first change was made: the records' times are made up, so that windows are always cut
/// in the same places.
const BEGINNING: i64 = 1_796_000_000;

/// The same as an instant.
pub(crate) fn beginning() -> DateTime<Utc> {
    DateTime::from_timestamp(BEGINNING, 0).unwrap_or_default()
}

/// How many seconds lie between one change and the next.
const SECONDS_BETWEEN: i64 = 4;

/// The most splits, so that shards do not become empty.
const MOST_SPLITS: usize = 6;

/// A stream whose records come when a test says so.
pub(crate) struct Shards {
    pub(crate) stream: InMemoryStream,
    /// What has happened, and how much of it is in the stream yet.
    past: Vec<Record>,
    shown: usize,
    open: Vec<Open>,
    splits: usize,
    /// The places of all records, by their shard.
    places: BTreeMap<ShardId, Vec<SequenceNumber>>,
}

/// A shard that goes on, with the items whose hash leaves this remainder.
struct Open {
    id: ShardId,
    remainder: u64,
    modulus: u64,
}

impl Shards {
    /// A stream of two shards, without a record yet.
    pub(crate) fn of(arn: &str, past: &[Record]) -> Result<Self> {
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

    /// The places of a shard's records.
    pub(crate) fn places(&self, shard: &ShardId) -> &[SequenceNumber] {
        self.places.get(shard).map_or(&[], Vec::as_slice)
    }

    /// Whether there is more to come.
    pub(crate) fn is_growing(&self) -> bool {
        self.shown < self.past.len()
    }

    /// The stream gets so many more records.
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
            self.stream.push(&open.id, Record::of_event(event)?)?;
            self.places.entry(open.id.clone()).or_default().push(number.parse()?);
        }
        self.shown = end;
        Ok(())
    }

    /// Ends a shard. Two others or, as happens every few hours, one goes on in its place.
    pub(crate) fn split(&mut self, shard: usize, in_two: bool) -> Result<()> {
        if self.splits < MOST_SPLITS {
            self.splits += 1;
            let Open { id, remainder, modulus } = self.open.remove(shard % self.open.len());
            let children = if in_two {
                vec![self.begin(remainder, 2 * modulus), self.begin(remainder + modulus, 2 * modulus)]
            } else {
                vec![self.begin(remainder, modulus)]
            };
            self.stream.split(&id, &children)?;
        }
        Ok(())
    }
}

/// The number of the n-th record: each is above the one before, and they grow from one digit to forty,
/// so that nobody who compares them as texts or keeps them in an integer is right.
fn number(n: usize) -> String {
    if n < 9 {
        return (n + 1).to_string();
    }
    let digits = (2 + n / 4).min(payments_model::sequence_number::MAX_DIGITS);
    format!("1{n:0width$}", width = digits - 1)
}

#[test]
fn numbers_go_up_to_forty_digits() -> Result<()> {
    let numbers: Vec<SequenceNumber> = (0..200).map(|n| number(n).parse()).collect::<Result<_, _>>()?;
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:#?}");
    assert_eq!((numbers[0].as_str().len(), numbers[199].as_str().len()), (1, 40));
    Ok(())
}
