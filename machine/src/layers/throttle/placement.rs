//! DynamoDB's placement of partition keys: a seeded hash over the partitions of a table or index, and their splits.
//!
//! DynamoDB documents that a hash of the partition key chooses the partition, not which hash. So one seed is one possible
//! placement, and a result counts only over many.

use std::num::Wrapping;

/// The hash space. Partitions are ranges of it.
pub const SPACE: u32 = 1 << 20;

/// The seconds for which a partition is throttled until it splits. The Developer Guide says only that DynamoDB splits
/// partitions "for heat" and that it takes minutes, so this rests on little. A second without a throttle counts back.
pub const SPLITS_AFTER: u32 = 7 * 60;

/// Returns the place of a key in the hash space: an FNV-1a hash, mixed once more.
pub fn position(seed: u64, place: &str, key: &str) -> u32 {
    let begin = Wrapping(0xcbf2_9ce4_8422_2325) ^ Wrapping(seed);
    let bytes = place.bytes().chain([0]).chain(key.bytes());
    let hash = bytes.fold(begin, |hash, byte| (hash ^ Wrapping(u64::from(byte))) * Wrapping(0x0100_0000_01b3));
    let mixed = (hash ^ (hash >> 31)) * Wrapping(0x9e37_79b9_7f4a_7c15);
    u32::try_from((mixed ^ (mixed >> 29)).0 >> 44).unwrap_or(0)
}

/// The partitions of a table or index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partitions {
    /// The end of each range, in order.
    ends: Vec<u32>,
    /// The seconds in which each partition was throttled, less those in which it was not.
    throttled: Vec<u32>,
}

impl Partitions {
    /// Creates partitions of equal ranges.
    pub fn new(count: u32) -> Self {
        let end = |n: u32| u64::from(SPACE) * u64::from(n) / u64::from(count);
        let ends: Vec<u32> = (1..=count).map(|n| u32::try_from(end(n)).unwrap_or(SPACE)).collect();
        Self { throttled: vec![0; ends.len()], ends }
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the partition of a position.
    pub fn at(&self, position: u32) -> usize {
        self.ends.partition_point(|&end| end <= position)
    }

    /// Returns those that were throttled of late.
    pub fn throttled(&self) -> Vec<usize> {
        (0..self.count()).filter(|&number| self.throttled[number] > 0).collect()
    }

    /// Returns the part of the hash space that a partition has, of [`SPACE`].
    pub fn width(&self, number: usize) -> i64 {
        let begin = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        i64::from(self.ends[number] - begin)
    }

    /// Returns the largest part of the hash space that a partition has.
    pub fn widest(&self) -> i64 {
        (0..self.count()).map(|number| self.width(number)).max().unwrap_or(0)
    }

    /// Counts a second in which none was throttled.
    pub fn pass_calm_second(&mut self) {
        self.throttled.iter_mut().for_each(|counted| *counted = counted.saturating_sub(1));
    }

    /// Counts a second in which some partitions were throttled, and splits those that have been for too long. Returns
    /// whether one split.
    pub fn pass_second(&mut self, throttled: &[bool]) -> bool {
        let before = self.count();
        for number in (0..before).rev() {
            let counted = &mut self.throttled[number];
            *counted = if throttled[number] { *counted + 1 } else { counted.saturating_sub(1) };
            let width = u32::try_from(self.width(number)).unwrap_or(0);
            if self.throttled[number] >= SPLITS_AFTER && width > 1 {
                self.throttled[number] = 0;
                self.throttled.insert(number, 0);
                self.ends.insert(number, self.ends[number] - width / 2);
            }
        }
        self.count() > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_spread_over_partitions_and_each_seed_places_them_anew() {
        let partitions = Partitions::new(8);
        let placed = |seed| {
            let mut keys = vec![0_u32; 8];
            (0..8_000).for_each(|key| keys[partitions.at(position(seed, "t/due", &key.to_string()))] += 1);
            keys
        };
        for seed in 0..20 {
            let keys = placed(seed);
            // 1,000 each, and five standard deviations of 30.
            assert!(keys.iter().all(|count| count.abs_diff(1_000) < 150), "{keys:?}");
            assert_ne!(keys, placed(seed + 1));
        }
        // Neighbouring keys and places are independent: of 32 keys, a partition of eight has between 0 and 15.
        let few =
            |seed| (0..32).filter(|key: &u32| partitions.at(position(seed, "t/due", &key.to_string())) == 3).count();
        let total: usize = (0..1_000).map(few).sum();
        assert!(total.abs_diff(4_000) < 300, "{total}");
        assert!((0..1_000).any(|seed| few(seed) >= 9) && (0..1_000).any(|seed| few(seed) == 0));
    }

    #[test]
    fn a_partition_splits_after_minutes_of_throttling() {
        let mut partitions = Partitions::new(4);
        assert!(!partitions.pass_second(&[false, true, false, false]));
        assert!(!partitions.pass_second(&[false; 4]), "it counts back");
        for _ in 1..SPLITS_AFTER {
            assert!(!partitions.pass_second(&[false, true, false, false]));
        }
        assert!(partitions.pass_second(&[false, true, false, false]));
        let widths: Vec<i64> = (0..partitions.count()).map(|number| partitions.width(number)).collect();
        let quarter = i64::from(SPACE) / 4;
        assert_eq!(widths, [quarter, quarter / 2, quarter / 2, quarter, quarter]);
        assert_eq!([0, SPACE / 4, SPACE / 8 * 3, SPACE - 1].map(|position| partitions.at(position)), [0, 1, 2, 4]);
    }
}
