//! Reads of the past, and their age. The indexes of the long-term table do not lag here.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use fastrand::Rng;
use payments_machine::layers::lag::{Changes, Past, Read};
use payments_machine::layers::random::{Seed, happens};
use payments_machine::layers::throttle::placement::SPACE;
use payments_machine::layers::throttle::{Throttle, partition_key};
use serde_json::Value;

use crate::facts::heads::HOT;
use crate::plans::faults::{FaultKind, Faults};

/// The longest standstill of an index.
pub(crate) const LONGEST: TimeDelta = TimeDelta::minutes(12);

/// The number of standstills a day.
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
pub(crate) struct Spells {
    faults: Faults,
    throttle: Throttle,
    spells: Arc<[Spell]>,
    random: Arc<Mutex<Rng>>,
}

impl Spells {
    /// Draws the spells of the days after `begin`.
    pub(crate) fn new(seed: Seed, faults: &Faults, throttle: &Throttle, (begin, days): (DateTime<Utc>, u32)) -> Self {
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
        Self { faults: faults.clone(), throttle: throttle.clone(), spells, random }
    }

    /// Returns when an index stopped at a key's partition, if it stands still.
    fn stopped(&self, index: &str, key: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut spells = self.spells.iter().filter(|spell| spell.from <= now && now < spell.to && spell.index == index);
        spells.find(|spell| self.throttle.are_together(index, key, spell.position)).map(|spell| spell.from)
    }

    /// Makes an answer as old as its read is. Returns whether it did.
    pub(crate) fn age(
        &self,
        read: Read<'_>,
        (trusts_index, now): (bool, DateTime<Utc>),
        changes: &Changes,
        answer: &mut Value,
    ) -> bool {
        let Some((kind, behind)) = self.behind(read, trusts_index, now) else { return false };
        let past = Past::before(changes.since(now - behind));
        let is_aged = !past.is_empty() && past.age(read, HOT, false, answer);
        if is_aged {
            self.faults.count(kind);
        }
        is_aged
    }

    /// Returns how far a read is behind, and why. A function that trusts an index does not read again.
    fn behind(
        &self,
        (operation, input): Read<'_>,
        trusts_index: bool,
        now: DateTime<Utc>,
    ) -> Option<(FaultKind, TimeDelta)> {
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
