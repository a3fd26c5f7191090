//! Outcomes of recounts: a date has drifted only if its counters are wrong.

use chrono::{DateTime, TimeDelta, Utc};
use payments_machine::layers::attributes::text;
use payments_machine::layers::lag::Change;
use serde_json::Value;

use crate::checks::checker;
use crate::laws::counters::{self, Numbers};
use crate::world::bank::Bank;
use crate::world::lag;

/// The time without changes after which the indexes show a date as it is.
const STILL: TimeDelta = TimeDelta::minutes(1);

/// Checks the outcome of a recount that began at `began`. A date that moves, or did so shortly before, is not judged: the
/// recount reads indexes.
pub(crate) fn check(bank: &Bank, began: DateTime<Utc>, outcome: &Value) {
    let drifts = outcome["drifts"].as_array().into_iter().flatten();
    let drifted: Vec<&str> = drifts.filter_map(|drift| drift["date"].as_str()).collect();
    if drifted.is_empty() {
        return;
    }
    let Ok(tables) = checker::tables(bank) else { return };
    let moved = bank.changes.since(began - lag::LONGEST - STILL);
    for date in drifted {
        let of_date =
            |numbers: Numbers| -> Numbers { numbers.into_iter().filter(|(what, _)| what.starts_with(date)).collect() };
        let (shown, right) = (of_date(counters::shown(&tables.hot)), of_date(counters::recounted(&tables)));
        if shown == right && !moved.iter().any(|change| is_of(change, date)) {
            bank.complain(format!("a recount found a drift where none is: {date} is {right:?}"));
        }
    }
}

/// Whether a change is one of a head or counter of a date.
fn is_of(change: &Change, date: &str) -> bool {
    let of_head = |head: &Value| text(head, "due").split('#').nth(1) == Some(date);
    let of_counter = change.key.0.starts_with("COUNTS#") && change.key.1 == date;
    of_counter || [&change.before, &change.after].into_iter().flatten().any(of_head)
}
