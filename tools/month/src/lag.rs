//! What DynamoDB's partitions do to calls: some are throttled for minutes, indexes lag, and reads without consistency
//! show the past.
//!
//! The past comes from the changes: an answer is made older by undoing the changes since then. The long-term table has no
//! stream, so its indexes do not lag here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use fastrand::Rng;
use serde_json::{Value, json};

use crate::attributes::{Key, key_of};
use crate::changes::Changes;
use crate::faults::{FaultKind, Faults};
use crate::random::{Seed, happens};

/// How many partitions a table or an index has.
const PARTITIONS: u32 = 4;

/// How long a partition is throttled, or an index lags, at most.
const LONGEST: TimeDelta = TimeDelta::minutes(12);

/// A time in which something is wrong with a partition of a table or index.
#[derive(Debug, Clone)]
struct Spell {
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    place: &'static str,
    partition: u32,
}

/// The spells of a month. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Lag {
    seed: Seed,
    faults: Faults,
    throttled: Arc<[Spell]>,
    lagging: Arc<[Spell]>,
    random: Arc<Mutex<Rng>>,
}

impl Lag {
    /// Draws the spells of the days after `begin`: a few of each kind a day.
    pub(crate) fn new(seed: Seed, faults: &Faults, begin: DateTime<Utc>, days: i64) -> Self {
        let spells = |what: &str, a_day: i64, places: &[&'static str]| -> Arc<[Spell]> {
            let mut random = seed.source(what);
            let mut spell = |_| {
                let from = begin + TimeDelta::seconds(random.i64(0..days.max(1) * 86_400));
                let length = TimeDelta::seconds(random.i64(10..LONGEST.num_seconds()));
                let place = places[random.usize(0..places.len())];
                Spell { from, to: from + length, place, partition: random.u32(0..PARTITIONS) }
            };
            if faults.are_enabled() { (0..days * a_day).map(&mut spell).collect() } else { Arc::default() }
        };
        let places = ["payments", "payment-history", "payments/due", "payments/unreported", "payment-history/due"];
        let indexes = ["payments/due", "payments/unreported", "payments/transaction"];
        Self {
            seed,
            faults: faults.clone(),
            throttled: spells("throttled", 12, &places),
            lagging: spells("lagging", 16, &indexes),
            random: Arc::new(Mutex::new(seed.source("lag"))),
        }
    }

    /// Returns the table or index of which a call meets a partition that is throttled now.
    pub(crate) fn throttles(&self, input: &Value, now: DateTime<Utc>) -> Option<&'static str> {
        let active: Vec<&Spell> = now_of(&self.throttled, now).collect();
        if active.is_empty() || !self.faults.are_enabled() {
            return None;
        }
        let touched = touched(input);
        let met = active.iter().find(|spell| touched.iter().any(|(place, key)| self.is_in(spell, place, key)));
        met.map(|spell| spell.place)
    }

    fn is_in(&self, spell: &Spell, place: &str, key: &str) -> bool {
        spell.place == place && self.seed.source(&format!("{place} {key}")).u32(0..PARTITIONS) == spell.partition
    }

    /// Makes an answer as old as its read is. Returns whether it did.
    pub(crate) fn age(
        &self,
        operation: &str,
        input: &Value,
        answer: &mut Value,
        now: DateTime<Utc>,
        changes: &Changes,
    ) -> bool {
        if input["TableName"] != "payments" || !self.faults.are_enabled() {
            return false;
        }
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let index = input["IndexName"].as_str();
        let (kind, behind) = match (operation, index) {
            ("Query", Some(index)) => {
                let (place, key) = (format!("payments/{index}"), partition_key(input));
                let spell = now_of(&self.lagging, now).find(|spell| self.is_in(spell, &place, &key));
                // Within a spell the index stands still; otherwise it is a moment behind.
                let behind =
                    spell.map_or_else(|| TimeDelta::milliseconds(random.i64(0..300)), |spell| now - spell.from);
                (FaultKind::IndexLag, behind)
            }
            ("Query" | "GetItem", None) if input["ConsistentRead"] != true && happens(&mut random, 500) => {
                (FaultKind::StaleRead, TimeDelta::milliseconds(random.i64(0..2_000)))
            }
            _ => return false,
        };
        let past: BTreeMap<Key, Option<Value>> =
            changes.since(now - behind).into_iter().map(|change| (change.key, change.before)).collect();
        if past.is_empty() {
            return false;
        }
        let before = answer.clone();
        match operation {
            "Query" => age_query(&past, input, answer),
            _ => age_get(&past, input, answer),
        }
        let aged = before != *answer;
        if aged {
            self.faults.count(kind);
        }
        aged
    }
}

fn now_of(spells: &[Spell], now: DateTime<Utc>) -> impl Iterator<Item = &Spell> {
    spells.iter().filter(move |spell| spell.from <= now && now < spell.to)
}

/// Returns the places that a call touches, each with the partition key there.
fn touched(input: &Value) -> Vec<(String, String)> {
    let mut touched = Vec::new();
    let mut add = |action: &Value| {
        let table = action["TableName"].as_str().unwrap_or_default();
        for item in [&action["Key"], &action["Item"]] {
            if let Some(pk) = item["pk"]["S"].as_str() {
                touched.push((table.to_owned(), pk.to_owned()));
            }
            if let Some(shard) = item["shard"]["N"].as_str() {
                touched.push((format!("{table}/due"), shard.to_owned()));
            }
        }
        if action.get("KeyConditionExpression").is_some() {
            let place =
                action["IndexName"].as_str().map_or_else(|| table.to_owned(), |index| format!("{table}/{index}"));
            touched.push((place, partition_key(action)));
        }
    };
    add(input);
    for action in input["TransactItems"].as_array().into_iter().flatten() {
        action.as_object().into_iter().flat_map(|kinds| kinds.values()).for_each(&mut add);
    }
    for (table, asked) in input["RequestItems"].as_object().into_iter().flatten() {
        for key in asked["Keys"].as_array().into_iter().flatten() {
            add(&json!({ "TableName": table, "Key": key }));
        }
    }
    touched
}

/// Returns the partition key of a query.
fn partition_key(input: &Value) -> String {
    let values = &input["ExpressionAttributeValues"];
    let value = [":pk", ":shard", ":id"].into_iter().find_map(|name| values.get(name));
    let text = value.and_then(|value| value["S"].as_str().or(value["N"].as_str()));
    text.unwrap_or_default().to_owned()
}

fn age_query(past: &BTreeMap<Key, Option<Value>>, input: &Value, answer: &mut Value) {
    // A page among others stays as it is: what belongs on it is not known here.
    let is_whole = ["LastEvaluatedKey", "ExclusiveStartKey", "Select"];
    if is_whole.iter().any(|name| answer.get(name).is_some() || input.get(name).is_some()) {
        return;
    }
    let Some(shown) = answer["Items"].as_array() else { return };
    let mut items = shown.clone();
    items.retain(|item| !past.contains_key(&key_of(item)));
    items.extend(past.values().flatten().filter(|item| selects(input, item)).cloned());
    let sort = match input["IndexName"].as_str() {
        Some("unreported") => "unreported",
        Some(_) => "due",
        None => "sk",
    };
    items.sort_by_key(|item| item[sort]["S"].as_str().unwrap_or_default().to_owned());
    if input["Limit"].as_u64().is_some_and(|limit| items.len() as u64 > limit) {
        return;
    }
    (answer["Count"], answer["Items"]) = (json!(items.len()), items.into());
}

fn age_get(past: &BTreeMap<Key, Option<Value>>, input: &Value, answer: &mut Value) {
    let Some(then) = past.get(&key_of(&input["Key"])) else { return };
    let Some(fields) = answer.as_object_mut() else { return };
    match then {
        Some(item) => fields.insert("Item".to_owned(), item.clone()),
        None => fields.remove("Item"),
    };
}

/// Whether a query selects an item. Queries have an equality on the partition and bounds on the sort key, or neither.
fn selects(input: &Value, item: &Value) -> bool {
    let values = &input["ExpressionAttributeValues"];
    let text = |name: &str| values[name]["S"].as_str();
    let within = |sort: &str| {
        let (from, to) = (text(":from").unwrap_or_default(), text(":to"));
        item[sort]["S"].as_str().is_some_and(|key| from <= key && to.is_none_or(|to| key <= to))
    };
    match input["IndexName"].as_str() {
        Some("due") => item["shard"] == values[":shard"] && within("due"),
        Some("transaction") => item["transactionId"] == values[":id"],
        Some("unreported") => item["shard"] == values[":shard"] && item.get("unreported").is_some(),
        _ => {
            let status = values.get(":status").is_none_or(|status| item["status"] == *status);
            item["pk"] == values[":pk"] && within("sk") && status
        }
    }
}
