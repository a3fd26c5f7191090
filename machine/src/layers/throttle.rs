//! The layer that throttles calls beyond the limits of the partitions of tables and indexes.
//!
//! From the Developer Guide: a partition accepts 1,000 write and 3,000 read units a second ("Designing partition keys"). An
//! index at its limit throttles the table's writes ("GSI write throttling and back-pressure"). Burst capacity and the
//! splitting of one key's items between partitions are left out: they help at times and are guaranteed nowhere.

pub mod placement;
mod touched;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use chrono::TimeDelta;
use payments_boot::Clock;
use serde_json::{Value, json};

use super::attributes::{Key, is_of_head, key_of, text};
use super::call::{Answer, Call, Fate, Layer, Next, WRITES};
use super::record::{CapacityUse, add_capacity};
use placement::{Partitions, position};
use touched::{Touched, touched};

pub use touched::partition_key;

/// The most partitions of a table or an index: a month of heat would split them on and on.
const AT_MOST: usize = 8;

/// The longest heat. A partition splits after seven minutes of it.
pub const LONGEST_HEAT: TimeDelta = TimeDelta::minutes(12);

/// The most seconds by which a place is brought to the present, one by one. Before that, all was calm.
const REMEMBERED: i64 = LONGEST_HEAT.num_seconds() + 600;

/// Limits of a partition, in units a second.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The limit of write units.
    pub writes: u64,
    /// The limit of read units; none if reads and writes share one limit.
    pub reads: Option<u64>,
    /// Whether what a second uses beyond its limit is missing in the next one, and a write whose condition fails is charged. A
    /// month leaves both out.
    pub is_exact: bool,
}

/// The partitions of one place.
pub struct Place {
    name: String,
    ranges: Partitions,
    heats: Vec<Heat>,
    /// The second that `used` is about.
    second: i64,
    /// The units that each partition has used in it: writes and reads.
    used: Vec<[u64; 2]>,
}

/// A time in which a part of a place is throttled, whatever is asked of it.
#[derive(Debug, Clone, Copy)]
pub struct Heat {
    /// The first second of the heat.
    pub from: i64,
    /// The second after the last.
    pub to: i64,
    /// The position of the part in the hash space.
    pub position: u32,
}

/// A charge of a partition key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// The place: a table, or `table/index`.
    pub place: String,
    /// The partition key.
    pub key: String,
    /// The units.
    pub units: u64,
    /// Whether they are write units.
    pub is_write: bool,
}

/// The layer. Clones share the partitions.
#[derive(Clone)]
pub struct Throttle {
    seed: u64,
    limits: Limits,
    clock: Clock,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    places: BTreeMap<String, Place>,
    /// The shard of each head, by which its entries in indexes are found.
    shards: BTreeMap<Key, String>,
    /// The cost of the last write of each item: the same as that of a write whose condition it fails.
    costs: BTreeMap<(String, Key), CapacityUse>,
    charges: Vec<Charge>,
}

impl Throttle {
    /// Creates the partitions of places, where a seed puts keys.
    pub fn new(seed: u64, limits: Limits, clock: &Clock, places: impl IntoIterator<Item = Place>) -> Self {
        let places = places.into_iter().map(|place| (place.name.clone(), place)).collect();
        let state = State { places, ..State::default() };
        Self { seed, limits, clock: clock.clone(), state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn second(&self) -> i64 {
        self.clock.instant().timestamp()
    }

    /// Returns the places and partitions that refuse this input: none if it goes through.
    ///
    /// Heat refuses reads and writes; a partition whose units are used up refuses those.
    pub fn refusing(&self, input: &Value, is_write: bool) -> Vec<(String, usize)> {
        let mut state = self.state();
        let touched = touched(input, &state.shards);
        let (mut refusing, second) = (Vec::new(), self.second());
        for Touched { place, key } in &touched {
            let Some(place) = state.places.get_mut(place) else { continue };
            place.advance(second, &self.limits);
            let at = place.ranges.at(position(self.seed, &place.name, key));
            if place.is_used_up(at, &self.limits, is_write) || place.is_hot(at) {
                refusing.push((place.name.clone(), at));
            }
        }
        refusing
    }

    /// Takes the keys of throttled partitions out of a BatchGetItem, if it has others: DynamoDB answers those, and returns
    /// these as unprocessed. Returns them; null if there are none.
    pub fn hold_back(&self, call: &mut Call) -> Value {
        if call.operation != "BatchGetItem" {
            return Value::Null;
        }
        let (mut input, mut unprocessed) = (call.input().clone(), json!({}));
        for (table, asked) in input["RequestItems"].as_object_mut().into_iter().flatten() {
            let Some(keys) = asked["Keys"].as_array().cloned() else { continue };
            let of_key = |key: &Value| json!({ "RequestItems": { table.as_str(): { "Keys": [key] } } });
            let is_hot = |key: &Value| !self.refusing(&of_key(key), false).is_empty();
            let (hot, cold): (Vec<Value>, Vec<Value>) = keys.into_iter().partition(is_hot);
            if hot.is_empty() || cold.is_empty() {
                continue;
            }
            unprocessed[table] = asked.clone();
            (unprocessed[table]["Keys"], asked["Keys"]) = (hot.into(), cold.into());
        }
        if unprocessed == json!({}) {
            return Value::Null;
        }
        call.set_input(input);
        unprocessed
    }

    /// Takes the charges of the last call.
    pub fn take_charges(&self) -> Vec<Charge> {
        std::mem::take(&mut self.state().charges)
    }

    /// Charges what a call used, and remembers the shards of the heads that it wrote. If several keys of a place share the
    /// cost, because an index entry moved, each is charged an equal part.
    fn charge(&self, operation: &str, input: &Value, answer: &Value) {
        let mut state = self.state();
        let mut used = CapacityUse::new();
        let second = self.second();
        let state = &mut *state;
        add_capacity(&mut used, operation, answer);
        let item = if input["Item"].is_object() { &input["Item"] } else { &input["Key"] };
        if self.limits.is_exact && item.is_object() {
            let id = (input["TableName"].to_string(), key_of(item));
            let is_failed =
                answer["__type"].as_str().is_some_and(|kind| kind.ends_with("ConditionalCheckFailedException"));
            if is_failed {
                // The engine reports nothing here. DynamoDB charges for the stored item, at least 1 unit.
                let table = input["TableName"].as_str().unwrap_or_default();
                let least = || CapacityUse::from([((operation.to_owned(), table.to_owned()), 2)]);
                used = state.costs.get(&id).cloned().unwrap_or_else(least);
            } else {
                let of_table = used.iter().filter(|((_, place), _)| input["TableName"] == place.as_str());
                let of_table = of_table.map(|(name, cost)| (name.clone(), *cost)).collect();
                state.costs.insert(id, of_table);
            }
        }
        if is_of_head(text(&input["Item"], "pk"))
            && let Some(shard) = input["Item"]["shard"]["N"].as_str()
        {
            state.shards.insert(key_of(&input["Item"]), shard.to_owned());
        }
        let (touched, is_write) = (touched(input, &state.shards), WRITES.contains(&operation));
        let kind = usize::from(!is_write && self.limits.reads.is_some());
        state.charges.clear();
        for ((_, name), half_units) in used {
            let keys: Vec<&Touched> = touched.iter().filter(|touched| touched.place == name).collect();
            let units = half_units.div_ceil(2 * u64::try_from(keys.len()).unwrap_or(1).max(1));
            let Some(place) = state.places.get_mut(&name) else { continue };
            place.advance(second, &self.limits);
            for touched in keys {
                let at = place.ranges.at(position(self.seed, &place.name, &touched.key));
                place.used.resize(place.ranges.count(), [0; 2]);
                place.used[at][kind] += units;
                if self.limits.is_exact {
                    state.charges.push(Charge { place: name.clone(), key: touched.key.clone(), units, is_write });
                }
            }
        }
    }

    /// Whether a key of a place is in the partition of a position.
    pub fn are_together(&self, place: &str, key: &str, hash: u32) -> bool {
        let state = self.state();
        let Some(found) = state.places.get(place) else { return false };
        found.ranges.at(position(self.seed, place, key)) == found.ranges.at(hash)
    }

    /// Returns a place's partitions now.
    pub fn partitions(&self, place: &str) -> Option<Partitions> {
        let (mut state, second) = (self.state(), self.second());
        let place = state.places.get_mut(place)?;
        place.advance(second, &self.limits);
        Some(place.ranges.clone())
    }

    /// Returns the position of a key of a place.
    pub fn position(&self, place: &str, key: &str) -> u32 {
        position(self.seed, place, key)
    }
}

/// Returns how DynamoDB throttles a call.
pub fn throttled(call: &Call) -> Fate {
    match call.operation.as_str() {
        "TransactWriteItems" => Fate::CancelTransaction("ThrottlingError"),
        _ => Fate::Refuse(400, "ProvisionedThroughputExceededException"),
    }
}

#[async_trait]
impl Layer for Throttle {
    async fn carry(&self, mut call: Call, next: Next) -> Answer {
        let (operation, input) = (call.operation.clone(), call.shared_input());
        call.ask_for_capacity();
        let reply = next.send(call).await?;
        self.charge(&operation, &input, reply.json());
        Ok(reply)
    }
}

impl Place {
    /// Creates a place of so many partitions.
    pub fn new(name: &str, partitions: u32, second: i64, heats: Vec<Heat>) -> Self {
        let ranges = Partitions::new(partitions);
        Self { name: name.to_owned(), used: vec![[0; 2]; ranges.count()], ranges, heats, second }
    }

    fn is_hot(&self, partition: usize) -> bool {
        let now = |heat: &&Heat| heat.from <= self.second && self.second < heat.to;
        self.heats.iter().filter(now).any(|heat| self.ranges.at(heat.position) == partition)
    }

    /// Whether a partition has nothing left in this second. A call may overdraw it: its cost is known only afterwards, as in
    /// DynamoDB.
    fn is_used_up(&self, partition: usize, limits: &Limits, is_write: bool) -> bool {
        let [writes, reads] = self.used.get(partition).copied().unwrap_or_default();
        if is_write { writes >= limits.writes } else { limits.reads.is_some_and(|most| reads >= most) }
    }

    /// Brings the place to this second: counts those in which a partition was throttled, and splits it after minutes.
    fn advance(&mut self, second: i64, limits: &Limits) {
        if second <= self.second {
            return;
        }
        let was_throttled = self.used.iter().any(|[writes, _]| *writes >= limits.writes);
        let is_warm = self.heats.iter().any(|heat| heat.from < second && self.second < heat.to);
        if was_throttled || is_warm || !self.ranges.throttled().is_empty() {
            self.second = self.second.max(second - REMEMBERED);
            while self.second < second {
                self.pass_second(limits);
            }
        } else {
            self.used.clear();
        }
        self.second = second;
        self.used.resize(self.ranges.count(), [0; 2]);
    }

    fn pass_second(&mut self, limits: &Limits) {
        let count = self.ranges.count();
        let throttled: Vec<bool> = (0..count).map(|at| self.is_hot(at) || self.is_used_up(at, limits, true)).collect();
        if count < AT_MOST && throttled.contains(&true) {
            self.ranges.pass_second(&throttled);
        } else {
            self.ranges.pass_calm_second();
        }
        self.second += 1;
        if limits.is_exact && self.ranges.count() == count {
            let most = [limits.writes, limits.reads.unwrap_or(limits.writes)];
            self.used.iter_mut().for_each(|used| *used = [0, 1].map(|kind| used[kind].saturating_sub(most[kind])));
        } else {
            self.used.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::time::Time;

    const AWS: Limits = Limits { writes: 1_000, reads: Some(3_000), is_exact: true };

    /// A throttle of one partition for each place, and its time.
    fn throttle(places: &[&str]) -> (Throttle, Time) {
        let time = Time::at(DateTime::UNIX_EPOCH);
        let places = places.iter().map(|name| Place::new(name, 1, 0, Vec::new()));
        (Throttle::new(7, AWS, &time.clock(), places), time)
    }

    /// Returns how many puts of `units` are accepted in each of some seconds.
    fn accepted(throttle: &Throttle, time: &Time, units: u64, seconds: std::ops::Range<i64>) -> Vec<u32> {
        let mut key = 0;
        let accept = |now| {
            time.set(DateTime::UNIX_EPOCH + TimeDelta::seconds(now));
            let mut accepted = 0;
            loop {
                key += 1;
                let item = json!({ "pk": { "S": format!("PAY#{key}") }, "sk": { "S": "DETAILS" } });
                let input = json!({ "TableName": "t", "Item": item });
                if accepted == 20_000 || !throttle.refusing(&input, true).is_empty() {
                    return accepted;
                }
                let used = json!({ "TableName": "t", "Table": { "CapacityUnits": units } });
                throttle.charge("PutItem", &input, &json!({ "ConsumedCapacity": used }));
                accepted += 1;
            }
        };
        seconds.map(accept).collect()
    }

    #[test]
    fn a_partition_accepts_a_thousand_write_units_a_second_and_saves_none() {
        let (throttle, time) = throttle(&["t"]);
        assert_eq!(accepted(&throttle, &time, 1, 0..2), [1_000, 1_000]);
        assert_eq!(accepted(&throttle, &time, 1, 9..10), [1_000]);
        // An overdraft is missing in the next second: 1,000 is 62.5 times 16.
        assert_eq!(accepted(&throttle, &time, 16, 10..14), [63, 62, 63, 62]);
    }

    #[test]
    fn a_call_that_touches_a_used_up_partition_is_throttled_as_dynamodb_does() {
        let (throttle, time) = throttle(&["t", "u"]);
        accepted(&throttle, &time, 1, 0..1);
        let put = |table: &str| json!({ "TableName": table, "Item": { "pk": { "S": "a" }, "sk": { "S": "b" } } });
        assert_eq!(throttle.refusing(&put("t"), true), [("t".to_owned(), 0)]);
        assert_eq!(throttle.refusing(&put("t"), false), []);
        assert_eq!(throttle.refusing(&put("u"), true), []);
    }
}
