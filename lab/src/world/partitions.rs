//! The partitions of tables and indexes, where `tools/capacity` places them: what each accepts, and how it splits.
//!
//! A partition of this small bank accepts a few write units a second, so that the feed's peaks reach the limit as those of a
//! million payments reach the real one. Beside the bank's own load, other heat stays on a part of a table for minutes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use payments_capacity::{Partitions as Ranges, SPACE, position};
use payments_machine::recorder::CapacityUse;
use serde_json::Value;

use crate::facts::attributes::{Key, key_of, text};
use crate::plans::faults::{FaultKind, Faults};
use crate::random::Seed;
use crate::world::touched::{Touched, touched};

/// How many partitions a table or an index has at first, as a new table on demand has.
const AT_FIRST: u32 = 4;

/// How many it has at most: a month of heat would split them on and on.
const AT_MOST: usize = 8;

/// How long heat lasts at most. A partition splits after seven minutes of it.
const LONGEST_HEAT: TimeDelta = TimeDelta::minutes(12);

/// How many times a day there is heat somewhere.
const HEATS_A_DAY: i64 = 12;

/// How far back a place is brought to the present, second by second. Before that, all was calm.
const REMEMBERED: i64 = LONGEST_HEAT.num_seconds() + 600;

const PLACES: [&str; 9] = [
    "payments",
    "payments/due",
    "payments/unreported",
    "payments/transaction",
    "payments/moved",
    "payment-history",
    "payment-history/due",
    "payment-history/transaction",
    "payment-history/moved",
];

/// The partitions. Clones share them.
#[derive(Clone)]
pub(crate) struct Partitions {
    seed: u64,
    limit: u64,
    faults: Faults,
    state: Arc<Mutex<State>>,
}

struct State {
    places: BTreeMap<&'static str, Place>,
    /// The shard of each head, by which its entries in indexes are found.
    shards: BTreeMap<Key, String>,
}

struct Place {
    name: &'static str,
    ranges: Ranges,
    heats: Vec<Heat>,
    /// The second that `used` is about.
    second: i64,
    /// The write units that each partition has used in it.
    used: Vec<u64>,
}

/// A time in which a part of a place is throttled, whatever the bank does.
#[derive(Debug, Clone, Copy)]
struct Heat {
    from: i64,
    to: i64,
    position: u32,
}

impl Partitions {
    /// Creates the partitions of a bank with `payments` a day, and draws the heat of the days after `begin`.
    pub(crate) fn new(seed: Seed, faults: &Faults, begin: DateTime<Utc>, (days, payments): (u32, usize)) -> Self {
        let mut random = seed.source("heat");
        let second = begin.timestamp();
        let place = |name| Place::new(name, second);
        let mut places: BTreeMap<&'static str, Place> = PLACES.map(|name| (name, place(name))).into();
        let heats = if faults.has(FaultKind::Throttled) { i64::from(days) * HEATS_A_DAY } else { 0 };
        for _ in 0..heats {
            let from = second + random.i64(0..i64::from(days.max(1)) * 86_400);
            let to = from + random.i64(10..LONGEST_HEAT.num_seconds());
            let (name, position) = (PLACES[random.usize(0..PLACES.len())], random.u32(0..SPACE));
            places.entry(name).or_insert_with(|| place(name)).heats.push(Heat { from, to, position });
        }
        let limit = 10 + u64::try_from(payments).unwrap_or(0) / 10;
        let state = State { places, shards: BTreeMap::new() };
        Self { seed: seed.0, limit, faults: faults.clone(), state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the places of which a partition refuses this call: none if the call goes through.
    ///
    /// Heat refuses reads and writes; a partition whose units are used up refuses writes, those of an index the write to
    /// its table ("GSI write throttling and back-pressure" in the Developer Guide).
    pub(crate) fn refusing(&self, input: &Value, is_write: bool, now: DateTime<Utc>) -> Vec<&'static str> {
        let mut state = self.state();
        let touched = touched(input, &state.shards);
        if !self.faults.has(FaultKind::Throttled) {
            return Vec::new();
        }
        let mut refusing = Vec::new();
        for Touched { place, key } in &touched {
            let Some(place) = state.places.get_mut(place.as_str()) else { continue };
            place.advance(now.timestamp(), self.limit);
            let at = place.ranges.at(position(self.seed, place.name, key));
            let is_used_up = is_write && place.used.get(at).is_some_and(|used| *used >= self.limit);
            if is_used_up || place.is_hot(at) {
                refusing.push(place.name);
            }
        }
        refusing
    }

    /// Charges what a write used, and remembers the shards of the heads that it wrote.
    pub(crate) fn charge(&self, input: &Value, used: &CapacityUse, now: DateTime<Utc>) {
        let mut state = self.state();
        if text(&input["Item"], "pk").starts_with("ACCT#")
            && let Some(shard) = input["Item"]["shard"]["N"].as_str()
        {
            state.shards.insert(key_of(&input["Item"]), shard.to_owned());
        }
        let touched = touched(input, &state.shards);
        for ((_, name), half_units) in used {
            let keys: Vec<&Touched> = touched.iter().filter(|touched| touched.place == *name).collect();
            let share = half_units.div_ceil(2 * u64::try_from(keys.len()).unwrap_or(1).max(1));
            let Some(place) = state.places.get_mut(name.as_str()) else { continue };
            place.advance(now.timestamp(), self.limit);
            for touched in keys {
                let at = place.ranges.at(position(self.seed, place.name, &touched.key));
                place.used.resize(place.ranges.count(), 0);
                place.used[at] += share;
            }
        }
    }

    /// Whether a key of a place is in the partition of a position.
    pub(crate) fn are_together(&self, place: &str, key: &str, hash: u32) -> bool {
        let state = self.state();
        let Some(found) = state.places.get(place) else { return false };
        found.ranges.at(position(self.seed, place, key)) == found.ranges.at(hash)
    }

    /// Returns the hot table's partitions now.
    pub(crate) fn of_hot_table(&self, now: DateTime<Utc>) -> Option<Ranges> {
        let mut state = self.state();
        let place = state.places.get_mut("payments")?;
        place.advance(now.timestamp(), self.limit);
        Some(place.ranges.clone())
    }

    /// Returns the position of a key of the hot table.
    pub(crate) fn position(&self, key: &str) -> u32 {
        position(self.seed, "payments", key)
    }
}

impl Place {
    fn new(name: &'static str, second: i64) -> Self {
        let ranges = Ranges::of(AT_FIRST);
        Self { name, used: vec![0; ranges.count()], ranges, heats: Vec::new(), second }
    }

    fn is_hot(&self, partition: usize) -> bool {
        let now = |heat: &&Heat| heat.from <= self.second && self.second < heat.to;
        self.heats.iter().filter(now).any(|heat| self.ranges.at(heat.position) == partition)
    }

    /// Brings the place to this second: counts those in which a partition was throttled, and splits it after minutes.
    fn advance(&mut self, second: i64, limit: u64) {
        if second <= self.second {
            return;
        }
        let was_throttled = self.used.iter().any(|used| *used >= limit);
        let is_warm = self.heats.iter().any(|heat| heat.from < second && self.second < heat.to);
        if was_throttled || is_warm || !self.ranges.throttled().is_empty() {
            self.second = self.second.max(second - REMEMBERED);
            while self.second < second {
                self.pass_second(limit);
            }
        }
        self.second = second;
        self.used.clear();
        self.used.resize(self.ranges.count(), 0);
    }

    fn pass_second(&mut self, limit: u64) {
        let count = self.ranges.count();
        let is_full = |partition: usize| self.used.get(partition).is_some_and(|used| *used >= limit);
        let throttled: Vec<bool> = (0..count).map(|at| self.is_hot(at) || is_full(at)).collect();
        if count < AT_MOST && throttled.contains(&true) {
            self.ranges.pass_second(&throttled);
        } else {
            self.ranges.pass_calm_second();
        }
        self.second += 1;
        self.used.clear();
    }
}
