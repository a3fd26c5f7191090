//! DynamoDB's limits as token buckets on a virtual clock, for single calls: one for each partition of a table or index.
//!
//! From the Developer Guide: a partition accepts 1,000 write and 3,000 read units a second ("Designing partition keys"). An
//! index at its limit throttles the table's writes ("GSI write throttling and back-pressure"). Burst capacity and the
//! splitting of one key's items between partitions are left out: they help at times and are guaranteed nowhere.

use std::collections::HashMap;
use std::fmt;

use crate::placement::{Partitions, position};

/// The most units per second of one partition.
const WRITES: u64 = 1_000;
const READS: u64 = 3_000;

/// The kind of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum UnitKind {
    Write,
    Read,
}

/// The name of a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    /// `table` or `table/index`.
    pub(crate) place: String,
    /// The partition key, or the partition if several keys share it.
    pub(crate) key: String,
    pub(crate) kind: UnitKind,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`, key `{}`", self.place, self.key)
    }
}

/// A bucket. All numbers are half units, since a read can cost half a unit.
#[derive(Debug, Clone)]
struct Bucket {
    name: Name,
    /// What it gains per second, which is also the most that it holds.
    rate: i64,
    left: i64,
    second: u64,
}

impl Bucket {
    fn fill_until(&mut self, second: u64) {
        let passed = i64::try_from(second - self.second).unwrap_or(1);
        self.left = self.left.saturating_add(self.rate.saturating_mul(passed)).min(self.rate);
        self.second = second;
    }
}

/// Where partition keys are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Each has a partition of its own: the kindest placement.
    Apart,
    /// Each is on one of so many partitions of its table or index, by the hash of a seed.
    Seeded(u64, u32),
}

/// All buckets, with the numbers that they get when they are first named.
#[derive(Debug, Clone)]
pub(crate) struct Buckets {
    placement: Placement,
    numbers: HashMap<Name, usize>,
    buckets: Vec<Bucket>,
}

impl Buckets {
    /// Creates the buckets of tables whose keys are placed like this.
    pub(crate) fn new(placement: Placement) -> Self {
        Self { placement, numbers: HashMap::new(), buckets: Vec::new() }
    }

    /// Returns the number of a partition key's bucket.
    pub(crate) fn number(&mut self, mut name: Name) -> usize {
        if let Placement::Seeded(seed, partitions) = self.placement {
            name.key = partition(Partitions::of(partitions).at(position(seed, &name.place, &name.key)));
        }
        if let Some(&number) = self.numbers.get(&name) {
            return number;
        }
        let units = if name.kind == UnitKind::Write { WRITES } else { READS };
        let rate = i64::try_from(2 * units).unwrap_or(i64::MAX);
        self.numbers.insert(name.clone(), self.buckets.len());
        self.buckets.push(Bucket { name, rate, left: rate, second: 0 });
        self.buckets.len() - 1
    }

    /// Whether a bucket has nothing left in this second. A call may overdraw it: its cost is known only afterwards, as in
    /// DynamoDB.
    pub(crate) fn is_empty(&mut self, number: usize, second: u64) -> bool {
        let bucket = &mut self.buckets[number];
        bucket.fill_until(second);
        bucket.left <= 0
    }

    pub(crate) fn charge(&mut self, number: usize, half_units: u64) {
        let bucket = &mut self.buckets[number];
        bucket.left = bucket.left.saturating_sub_unsigned(half_units);
    }

    pub(crate) fn name(&self, number: usize) -> &Name {
        &self.buckets[number].name
    }
}

/// Returns the name of a partition.
pub(crate) fn partition(number: usize) -> String {
    format!("partition {number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(key: &str) -> Name {
        Name { place: "t".to_owned(), key: key.to_owned(), kind: UnitKind::Write }
    }

    /// Returns how many calls of `units` are accepted in each of some seconds.
    fn accepted(buckets: &mut Buckets, number: usize, units: u64, seconds: std::ops::Range<u64>) -> Vec<u32> {
        let accept = |second| {
            let mut accepted = 0;
            while accepted < 20_000 && !buckets.is_empty(number, second) {
                buckets.charge(number, 2 * units);
                accepted += 1;
            }
            accepted
        };
        seconds.map(accept).collect()
    }

    #[test]
    fn a_partition_accepts_a_thousand_write_units_a_second_and_saves_none() {
        let mut buckets = Buckets::new(Placement::Apart);
        let number = buckets.number(name("k"));
        assert_eq!(accepted(&mut buckets, number, 1, 0..2), [1_000, 1_000]);
        assert_eq!(accepted(&mut buckets, number, 1, 9..10), [1_000]);
        // What is overdrawn is missing in the next second: 1,000 is 62.5 times 16.
        assert_eq!(accepted(&mut buckets, number, 16, 10..14), [63, 62, 63, 62]);
    }

    #[test]
    fn keys_share_a_bucket_if_they_are_on_one_partition() {
        let mut apart = Buckets::new(Placement::Apart);
        assert_ne!(apart.number(name("a")), apart.number(name("b")));
        let mut together = Buckets::new(Placement::Seeded(7, 1));
        let number = together.number(name("a"));
        assert_eq!(number, together.number(name("b")));
        assert_eq!(accepted(&mut together, number, 1, 0..1), [1_000]);
        assert_eq!(together.name(number).to_string(), "`t`, key `partition 0`");
    }
}
