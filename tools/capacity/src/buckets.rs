//! What DynamoDB takes per second, as buckets that fill with virtual time: one for each partition key
//! of a table or index, and one for each table or index as a whole.
//!
//! From the Developer Guide: a partition takes 1,000 write and 3,000 read units a second ("Designing
//! partition keys"); a new on-demand table or index takes 4,000 and 12,000, and twice its peak of the
//! past 30 minutes ("On-demand capacity mode", "Warm throughput"). An index that takes no more throttles
//! the table's writes ("GSI write throttling and back-pressure"). Left out is what helps at times and is
//! promised nowhere: burst capacity, and the splitting of one key's items between partitions.

use std::collections::{BTreeMap, HashMap};

/// The most units per second of one partition key.
const KEY_WRITES: u64 = 1_000;
const KEY_READS: u64 = 3_000;

/// What a new on-demand table or index takes per second.
pub(crate) const NEW_WRITES: u64 = 4_000;
const NEW_READS: u64 = 12_000;

/// How long it takes until a table takes twice what it has taken, in seconds.
const GROWS_AFTER: u64 = 30 * 60;

/// What a unit is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Write,
    Read,
}

/// Whose bucket it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    /// `table` or `table/index`.
    pub(crate) place: String,
    /// A partition key; without it, the place as a whole.
    pub(crate) key: Option<String>,
    pub(crate) kind: Kind,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.key {
            Some(key) => write!(f, "`{}`, key `{key}`", self.place),
            None => write!(f, "`{}` as a whole", self.place),
        }
    }
}

/// How much a table or index takes at first as a whole, in write units per second.
#[derive(Debug, Clone)]
pub(crate) enum Warmth {
    /// As much as comes: only partition keys have a limit.
    Ample,
    /// 4,000, but for the tables named here.
    Tables(BTreeMap<String, u64>),
}

impl Warmth {
    /// What a new stack takes.
    pub(crate) fn new_tables() -> Self {
        Self::Tables(BTreeMap::new())
    }

    fn rate(&self, name: &Name) -> Option<u64> {
        match (self, name.kind) {
            (Self::Ample, _) => None,
            (Self::Tables(_), Kind::Read) => Some(NEW_READS),
            (Self::Tables(writes), Kind::Write) => Some(writes.get(&name.place).copied().unwrap_or(NEW_WRITES)),
        }
    }
}

/// One bucket. All numbers are half units, since a read can cost half a unit.
#[derive(Debug, Clone)]
struct Bucket {
    /// What it gains per second, and the most it holds; nothing where there is no limit.
    rate: Option<i64>,
    grows: bool,
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
            if self.grows && second / GROWS_AFTER > self.second / GROWS_AFTER {
                *rate = (*rate).max(i64::try_from(2 * self.peak).unwrap_or(i64::MAX));
            }
            let passed = i64::try_from(second - self.second).unwrap_or(1);
            self.left = self.left.saturating_add(rate.saturating_mul(passed)).min(*rate);
        }
        self.second = second;
    }
}

/// All buckets, by numbers that are given out as they are first named.
#[derive(Debug, Clone)]
pub(crate) struct Buckets {
    warmth: Warmth,
    numbers: HashMap<Name, usize>,
    names: Vec<Name>,
    buckets: Vec<Bucket>,
}

impl Buckets {
    pub(crate) fn new(warmth: Warmth) -> Self {
        Self { warmth, numbers: HashMap::new(), names: Vec::new(), buckets: Vec::new() }
    }

    /// The number of a bucket.
    pub(crate) fn number(&mut self, name: &Name) -> usize {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let rate = match (&name.key, name.kind) {
            (Some(_), Kind::Write) => Some(KEY_WRITES),
            (Some(_), Kind::Read) => Some(KEY_READS),
            (None, _) => self.warmth.rate(name),
        };
        let rate = rate.map(|units| i64::try_from(2 * units).unwrap_or(i64::MAX));
        let bucket = Bucket {
            rate,
            grows: name.key.is_none(),
            left: rate.unwrap_or(0),
            second: 0,
            spent_this_second: 0,
            peak: 0,
            spent: 0,
        };
        self.buckets.push(bucket);
        self.names.push(name.clone());
        self.numbers.insert(name.clone(), self.names.len() - 1);
        self.names.len() - 1
    }

    /// Whether a bucket can ever be empty.
    pub(crate) fn is_limited(&self, number: usize) -> bool {
        self.buckets[number].rate.is_some()
    }

    /// Whether a bucket has nothing left in this second. What goes through may overdraw it: like
    /// DynamoDB, the model knows what a call costs only when it is done.
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

    /// Takes from a bucket, unless it is empty.
    pub(crate) fn take(&mut self, number: usize, second: u64, half_units: u64) -> bool {
        let empty = self.is_empty(number, second);
        if !empty {
            self.charge(number, half_units);
        }
        !empty
    }

    /// Undoes a charge of this second.
    pub(crate) fn give_back(&mut self, number: usize, half_units: u64) {
        let bucket = &mut self.buckets[number];
        bucket.left = bucket.left.saturating_add_unsigned(half_units);
        bucket.spent_this_second -= half_units;
        bucket.spent -= half_units;
    }

    pub(crate) fn name(&self, number: usize) -> &Name {
        &self.names[number]
    }

    /// All units that a bucket gave.
    pub(crate) fn spent(&self, number: usize) -> u64 {
        self.buckets[number].spent / 2
    }

    /// The bucket of a partition key that gave the most writes.
    pub(crate) fn hottest_key(&self) -> Option<usize> {
        let keys = (0..self.names.len()).filter(|&n| self.names[n].key.is_some() && self.names[n].kind == Kind::Write);
        keys.max_by_key(|&number| self.buckets[number].spent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(key: Option<&str>) -> Name {
        Name { place: "t".to_owned(), key: key.map(str::to_owned), kind: Kind::Write }
    }

    /// How many calls of `units` go through in each of some seconds.
    fn taken(buckets: &mut Buckets, number: usize, units: u64, seconds: std::ops::Range<u64>) -> Vec<u32> {
        let take = |second| {
            let mut taken = 0;
            while taken < 20_000 && !buckets.is_empty(number, second) {
                buckets.charge(number, 2 * units);
                taken += 1;
            }
            taken
        };
        seconds.map(take).collect()
    }

    #[test]
    fn a_key_takes_a_thousand_write_units_a_second_and_saves_none() {
        let mut buckets = Buckets::new(Warmth::Ample);
        let number = buckets.number(&name(Some("k")));
        assert_eq!(taken(&mut buckets, number, 1, 0..2), [1_000, 1_000]);
        assert_eq!(taken(&mut buckets, number, 1, 9..10), [1_000]);
        // What was overdrawn is missing in the second after: 16 goes 62.5 times into 1,000.
        assert_eq!(taken(&mut buckets, number, 16, 10..14), [63, 62, 63, 62]);
        assert_eq!(buckets.hottest_key(), Some(number));
    }

    #[test]
    fn a_new_table_takes_four_thousand_and_half_an_hour_later_eight() {
        let mut buckets = Buckets::new(Warmth::new_tables());
        let number = buckets.number(&name(None));
        assert_eq!(taken(&mut buckets, number, 1, 0..2), [4_000, 4_000]);
        assert_eq!(taken(&mut buckets, number, 1, GROWS_AFTER - 1..GROWS_AFTER), [4_000]);
        assert_eq!(taken(&mut buckets, number, 1, GROWS_AFTER..GROWS_AFTER + 1), [8_000]);
        let mut warm = Buckets::new(Warmth::Tables(BTreeMap::from([("t".to_owned(), 6_000)])));
        let number = warm.number(&name(None));
        assert_eq!(taken(&mut warm, number, 1, 0..1), [6_000]);
    }
}
