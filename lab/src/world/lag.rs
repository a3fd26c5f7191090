//! What reads see of the past: indexes lag, and reads without consistency are a moment behind.
//!
//! The past comes from the changes: an answer is made older by undoing the changes since then. The long-term table has no
//! stream, so its indexes do not lag here.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use fastrand::Rng;
use payments_capacity::SPACE;
use serde_json::Value;

use crate::facts::changes::Changes;
use crate::facts::past::Past;
use crate::plans::faults::{FaultKind, Faults};
use crate::random::{Seed, happens};
use crate::world::partitions::Partitions;
use crate::world::touched::partition_key;

/// How long an index stands still at most.
pub(crate) const LONGEST: TimeDelta = TimeDelta::minutes(12);

/// How often a day one does.
const A_DAY: i64 = 16;

const INDEXES: [&str; 3] = ["payments/due", "payments/unreported", "payments/moved"];

/// A time in which a partition of an index stands still.
#[derive(Debug, Clone)]
struct Spell {
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    index: &'static str,
    position: u32,
}

/// The spells of a month. Clones share them.
#[derive(Clone)]
pub(crate) struct Lag {
    faults: Faults,
    partitions: Partitions,
    spells: Arc<[Spell]>,
    random: Arc<Mutex<Rng>>,
}

impl Lag {
    /// Draws the spells of the days after `begin`.
    pub(crate) fn new(
        seed: Seed,
        faults: &Faults,
        partitions: &Partitions,
        (begin, days): (DateTime<Utc>, u32),
    ) -> Self {
        let mut random = seed.source("lagging");
        let days = i64::from(days);
        let mut spell = |_| {
            let from = begin + TimeDelta::seconds(random.i64(0..days.max(1) * 86_400));
            let to = from + TimeDelta::seconds(random.i64(10..LONGEST.num_seconds()));
            Spell { from, to, index: INDEXES[random.usize(0..INDEXES.len())], position: random.u32(0..SPACE) }
        };
        let spells =
            if faults.has(FaultKind::IndexLag) { (0..days * A_DAY).map(&mut spell).collect() } else { Arc::default() };
        let random = Arc::new(Mutex::new(seed.source("lag")));
        Self { faults: faults.clone(), partitions: partitions.clone(), spells, random }
    }

    /// Returns when an index stopped at a key's partition, if it stands still.
    fn stopped(&self, index: &str, key: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut spells = self.spells.iter().filter(|spell| spell.from <= now && now < spell.to && spell.index == index);
        spells.find(|spell| self.partitions.are_together(index, key, spell.position)).map(|spell| spell.from)
    }

    /// Makes an answer as old as its read is. Returns whether it did.
    pub(crate) fn age(&self, read: &Read<'_>, answer: &mut Value, changes: &Changes) -> bool {
        let Some((kind, behind)) = self.behind(read) else { return false };
        let past = Past::before(changes.since(read.now - behind));
        if past.is_empty() {
            return false;
        }
        let before = answer.clone();
        match read.operation {
            "Query" => past.age_query(read.input, answer),
            "BatchGetItem" => {
                if let Some(items) = answer["Responses"]["payments"].as_array_mut() {
                    past.age_batch(&read.input["RequestItems"]["payments"], items);
                }
            }
            _ => past.age_get(read.input, answer),
        }
        let is_aged = before != *answer;
        if is_aged {
            self.faults.count(kind);
        }
        is_aged
    }

    /// Returns how far a read is behind, and why.
    fn behind(&self, read: &Read<'_>) -> Option<(FaultKind, TimeDelta)> {
        let Read { operation, input, trusts_index, now } = *read;
        let batch = &input["RequestItems"]["payments"];
        let is_ours = input["TableName"] == "payments" || batch.is_object();
        if !is_ours || !self.faults.are_enabled() {
            return None;
        }
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        match (operation, input["IndexName"].as_str()) {
            ("Query", Some(index)) => {
                let stopped = self.stopped(&format!("payments/{index}"), partition_key(input), now);
                // If it does not stand still, it is a moment behind.
                let moment = if self.faults.has(FaultKind::IndexLag) { random.i64(0..300) } else { 0 };
                Some((FaultKind::IndexLag, stopped.map_or(TimeDelta::milliseconds(moment), |from| now - from)))
            }
            ("BatchGetItem", _) if trusts_index => {
                let mut spells = self.spells.iter().filter(|spell| spell.from <= now && now < spell.to);
                let unreported = spells.find(|spell| spell.index == "payments/unreported");
                unreported.map(|spell| (FaultKind::IndexLag, now - spell.from))
            }
            ("Query" | "GetItem" | "BatchGetItem", None)
                if input["ConsistentRead"] != true
                    && batch["ConsistentRead"] != true
                    && self.faults.has(FaultKind::StaleRead)
                    && happens(&mut random, 500) =>
            {
                Some((FaultKind::StaleRead, TimeDelta::milliseconds(random.i64(0..2_000))))
            }
            _ => None,
        }
    }
}

/// A read of the hot table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Read<'r> {
    pub(crate) operation: &'r str,
    pub(crate) input: &'r Value,
    /// Whether the function trusts an index, and does not read again.
    pub(crate) trusts_index: bool,
    pub(crate) now: DateTime<Utc>,
}
