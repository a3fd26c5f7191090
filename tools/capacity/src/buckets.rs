//! DynamoDB's limits as token buckets on a virtual clock: one for each partition key of a table or index, and one for
//! each table or index as a whole.
//!
//! From the Developer Guide: a partition accepts 1,000 write and 3,000 read units a second ("Designing partition
//! keys"). A new on-demand table or index accepts 4,000 and 12,000, and twice its peak of the past 30 minutes ("On-demand
//! capacity mode", "Warm throughput"). An index at its limit throttles the table's writes ("GSI write throttling and
//! back-pressure"). Burst capacity and the splitting of one key's items between partitions are left out: they help at
//! times and are guaranteed nowhere.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// The most units per second of one partition key.
const KEY_WRITES: u64 = 1_000;
const KEY_READS: u64 = 3_000;

/// The units per second that a new on-demand table or index accepts.
const NEW_WRITES: u64 = 4_000;
const NEW_READS: u64 = 12_000;

/// The seconds until a table accepts twice its peak.
const GROWS_AFTER: u64 = 30 * 60;

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
    /// The partition key, or nothing for the place as a whole.
    pub(crate) key: Option<String>,
    pub(crate) kind: UnitKind,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "`{}`, key `{key}`", self.place),
            None => write!(f, "`{}` as a whole", self.place),
        }
    }
}

/// A bucket. All numbers are half units, since a read can cost half a unit.
#[derive(Debug, Clone)]
struct Bucket {
    name: Name,
    /// What it gains per second, which is also the most that it holds. Nothing if there is no limit.
    rate: Option<i64>,
    left: i64,
    second: u64,
    spent_this_second: u64,
    peak: u64,
    spent: u64,
}

impl Bucket {
    fn fill_until(&mut self, second: u64) {
        if second == self.second {
            return;
        }
        self.peak = self.peak.max(self.spent_this_second);
        self.spent_this_second = 0;
        if let Some(rate) = &mut self.rate {
            if self.name.key.is_none() && second / GROWS_AFTER > self.second / GROWS_AFTER {
                *rate = (*rate).max(i64::try_from(2 * self.peak).unwrap_or(i64::MAX));
            }
            let passed = i64::try_from(second - self.second).unwrap_or(1);
            self.left = self.left.saturating_add(rate.saturating_mul(passed)).min(*rate);
        }
        self.second = second;
    }
}

/// The warm throughput of tables in write units per second, by name. Other tables and indexes are new.
pub(crate) type WarmThroughput = BTreeMap<String, u64>;

/// All buckets, with the numbers that they get when they are first named.
#[derive(Debug, Clone)]
pub(crate) struct Buckets {
    warm: Option<WarmThroughput>,
    numbers: HashMap<Name, usize>,
    buckets: Vec<Bucket>,
}

impl Buckets {
    /// Creates the buckets of tables with this warm throughput, or of tables that have limits only by partition key.
    pub(crate) fn new(warm: Option<WarmThroughput>) -> Self {
        Self { warm, numbers: HashMap::new(), buckets: Vec::new() }
    }

    /// Returns the number of a bucket.
    pub(crate) fn number(&mut self, name: Name) -> usize {
        if let Some(&number) = self.numbers.get(&name) {
            return number;
        }
        let rate = match (&name.key, name.kind, &self.warm) {
            (Some(_), UnitKind::Write, _) => Some(KEY_WRITES),
            (Some(_), UnitKind::Read, _) => Some(KEY_READS),
            (None, UnitKind::Write, Some(warm)) => Some(warm.get(&name.place).copied().unwrap_or(NEW_WRITES)),
            (None, UnitKind::Read, Some(_)) => Some(NEW_READS),
            (None, _, None) => None,
        };
        let rate = rate.map(|units| i64::try_from(2 * units).unwrap_or(i64::MAX));
        self.numbers.insert(name.clone(), self.buckets.len());
        let left = rate.unwrap_or(0);
        self.buckets.push(Bucket { name, rate, left, second: 0, spent_this_second: 0, peak: 0, spent: 0 });
        self.buckets.len() - 1
    }

    /// Whether a bucket has a limit.
    pub(crate) fn is_limited(&self, number: usize) -> bool {
        self.buckets[number].rate.is_some()
    }

    /// Whether a bucket has nothing left in this second. A call may overdraw it: its cost is known only afterwards, as in
    /// DynamoDB.
    pub(crate) fn is_empty(&mut self, number: usize, second: u64) -> bool {
        let bucket = &mut self.buckets[number];
        bucket.fill_until(second);
        bucket.rate.is_some() && bucket.left <= 0
    }

    pub(crate) fn charge(&mut self, number: usize, half_units: u64) {
        let bucket = &mut self.buckets[number];
        bucket.left = bucket.left.saturating_sub_unsigned(half_units);
        bucket.spent_this_second += half_units;
        bucket.spent += half_units;
    }

    pub(crate) fn name(&self, number: usize) -> &Name {
        &self.buckets[number].name
    }

    /// Returns the partition key with the most writes, and its write units.
    pub(crate) fn hottest_key(&self) -> Option<(&Name, u64)> {
        let of_keys = |bucket: &&Bucket| bucket.name.key.is_some() && bucket.name.kind == UnitKind::Write;
        let hottest = self.buckets.iter().filter(of_keys).max_by_key(|bucket| bucket.spent);
        hottest.map(|bucket| (&bucket.name, bucket.spent / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(key: Option<&str>) -> Name {
        Name { place: "t".to_owned(), key: key.map(str::to_owned), kind: UnitKind::Write }
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
    fn a_key_accepts_a_thousand_write_units_a_second_and_saves_none() {
        let mut buckets = Buckets::new(None);
        let number = buckets.number(name(Some("k")));
        assert_eq!(accepted(&mut buckets, number, 1, 0..2), [1_000, 1_000]);
        assert_eq!(accepted(&mut buckets, number, 1, 9..10), [1_000]);
        // What is overdrawn is missing in the next second: 1,000 is 62.5 times 16.
        assert_eq!(accepted(&mut buckets, number, 16, 10..14), [63, 62, 63, 62]);
        assert_eq!(buckets.hottest_key().map(|(name, _)| name.clone()), Some(name(Some("k"))));
    }

    #[test]
    fn a_new_table_accepts_four_thousand_and_half_an_hour_later_eight() {
        let mut buckets = Buckets::new(Some(BTreeMap::new()));
        let number = buckets.number(name(None));
        assert_eq!(accepted(&mut buckets, number, 1, 0..2), [4_000, 4_000]);
        assert_eq!(accepted(&mut buckets, number, 1, GROWS_AFTER - 1..GROWS_AFTER), [4_000]);
        assert_eq!(accepted(&mut buckets, number, 1, GROWS_AFTER..GROWS_AFTER + 1), [8_000]);
        let mut warm = Buckets::new(Some(BTreeMap::from([("t".to_owned(), 6_000)])));
        let number = warm.number(name(None));
        assert_eq!(accepted(&mut warm, number, 1, 0..1), [6_000]);
    }
}
