//! Reads of a date by clients, its payments and its counts, compared with the hot table's past.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use payments_machine::layers::attributes::{Key, number, text};
use payments_machine::layers::lag::Change;
use serde_json::Value;

use crate::facts::heads::{due_of, id_of, is_of_head};
use crate::laws::counters::{self, Numbers};
use crate::world::bank::Bank;
use crate::world::lag;

/// The time, beyond an index's standstill, after which a list shows a payment's last change.
const STILL: TimeDelta = TimeDelta::minutes(1);

/// The statuses, in the order of a date's list.
const STATUSES: [&str; 5] = ["SCHEDULED", "PENDING", "PROCESSED", "FAILED", "CANCELLED"];

/// Checks a date's payments, read to the end from `began` on. Each is shown in a state since a little before. A payment
/// that did not move within the index is listed exactly once, archived or not.
pub(crate) fn check_list(bank: &Bank, date: &str, began: DateTime<Utc>, shown: &[Value]) {
    let lost = bank.state().lost.clone();
    let changes = bank.changes.log();
    let heads = heads_of(&changes, date, began - lag::LONGEST - STILL);
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for payment in shown {
        let id = payment["paymentId"].as_str().unwrap_or_default();
        *places.entry(id).or_default() += 1;
        let known = heads.get(id);
        let was = known.is_some_and(|known| known.was.iter().any(|head| is_shown_as(head, payment)));
        let settled = || known.and_then(|known| bank.item("payment-history", &known.key.0, &known.key.1));
        if !was && !settled().is_some_and(|head| is_shown_as(&head, payment)) {
            bank.complain(format!("the list of {date} shows what no payment was: {payment}"));
        }
    }
    for (id, head) in heads.iter().filter(|(id, head)| head.is_still_there && !lost.contains(**id)) {
        let times = places.get(id).copied().unwrap_or(0);
        if times != 1 {
            bank.complain(format!("{id} is {times} times in the list of {date}, where it is due: {}", head.key.1));
        }
    }
    let places_of = |payment: &Value| STATUSES.iter().position(|status| payment["status"] == *status);
    if !shown.iter().map(places_of).is_sorted() {
        bank.complain(format!("the list of {date} has not the order of statuses"));
    }
}

/// The facts about a payment that is or was due on a date.
struct Known {
    key: Key,
    /// Whether its place in the index is the same all the time, in whichever table.
    is_still_there: bool,
    /// Its heads over time.
    was: Vec<Value>,
}

/// Returns the payments that were due on a date since an instant, with their heads of that time.
fn heads_of<'c>(changes: &'c [Change], date: &str, since: DateTime<Utc>) -> BTreeMap<&'c str, Known> {
    let mut found: BTreeMap<&str, Known> = BTreeMap::new();
    let mut over: BTreeSet<&Key> = BTreeSet::new();
    for change in changes.iter().rev().filter(|change| is_of_head(&change.key.0)) {
        if over.contains(&change.key) {
            continue;
        }
        // An archived head is in the long-term table unchanged.
        let Some(last) = change.after.as_ref().or(change.before.as_ref()) else { continue };
        let known = found.entry(id_of(&change.key.1)).or_insert_with(|| Known {
            key: change.key.clone(),
            is_still_there: true,
            was: vec![last.clone()],
        });
        if change.at < since {
            // The head at the beginning of that time.
            known.was.push(last.clone());
            over.insert(&change.key);
            continue;
        }
        let is_same = change.before.as_ref().is_some_and(|before| text(before, "due") == text(last, "due"));
        known.is_still_there &= is_same;
        known.was.extend([&change.before, &change.after].into_iter().flatten().cloned());
    }
    found.retain(|_, known| known.was.iter().any(|head| due_of(head).0 == date));
    found
}

/// Whether a list shows a head.
fn is_shown_as(head: &Value, payment: &Value) -> bool {
    let shown = |name: &str| payment[name].as_str().unwrap_or_default();
    let (due_date, due_at) = due_of(head);
    let texts = ["status", "payeeAccountId", "currency", "reference", "settledAt", "failureCode"]
        .iter()
        .all(|name| shown(name) == text(head, name));
    texts
        && (shown("dueDate"), shown("dueAt")) == (due_date, due_at)
        && text(head, "pk").strip_prefix("ACCT#") == Some(shown("accountId"))
        && ["version", "amountMinor"].iter().all(|name| payment[name] == number(head, name))
}

/// Checks the counts of a date, read from `began` on: they are those of its counters, unless these have changed meanwhile.
pub(crate) fn check_counts(bank: &Bank, date: &str, began: DateTime<Utc>, answer: &Value) {
    let mut counters: BTreeMap<Key, Value> = BTreeMap::new();
    {
        let changes = bank.changes.log();
        for Change { at, key, after, .. } in changes.iter().filter(|change| is_counter_of(&change.key, date)) {
            if *at >= began {
                return;
            }
            counters.remove(key);
            counters.extend(after.clone().map(|after| (key.clone(), after)));
        }
    }
    let (told, right) = (numbers(&answer["counts"][0]), counters::shown(&counters));
    if told != right {
        bank.complain(format!("the counts of {date} are {told:?}, and its counters {right:?}"));
    }
}

fn is_counter_of((pk, sk): &Key, date: &str) -> bool {
    pk.starts_with("COUNTS#") && sk == date
}

/// Returns the numbers of a date's counts.
fn numbers(counts: &Value) -> Numbers {
    let date = counts["date"].as_str().unwrap_or_default();
    let mut numbers = Numbers::new();
    let whole = |number: &Value| {
        let text = number.as_str().map_or_else(|| number.to_string(), str::to_owned);
        text.parse::<i128>().unwrap_or(i128::MAX)
    };
    for (status, count) in counts["byStatus"].as_object().into_iter().flatten() {
        numbers.insert(format!("{date} {status}"), whole(count));
    }
    for (currency, sums) in counts["sums"].as_object().into_iter().flatten() {
        for (status, sum) in sums.as_object().into_iter().flatten() {
            numbers.insert(format!("{date} {status} {currency}"), whole(sum));
        }
    }
    for name in ["archived", "unparsed"] {
        numbers.insert(format!("{date} {name}"), whole(&counts[name]));
    }
    numbers.retain(|_, number| *number != 0);
    numbers
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DATE: &str = "2026-03-13";

    fn head(status: &str, date: &str, version: u64) -> Value {
        json!({
            "pk": { "S": "ACCT#a" }, "status": { "S": status }, "due": { "S": format!("{status}#{date}#{date}T08:00:00Z#7") },
            "version": { "N": version.to_string() }, "amountMinor": { "N": "5" }, "currency": { "S": "GBP" },
            "payeeAccountId": { "S": "b" },
        })
    }

    fn change(hour: u32, before: Option<Value>, after: Option<Value>) -> Change {
        let at = format!("2026-03-14T{hour:02}:00:00Z").parse().unwrap();
        Change { at, key: ("ACCT#a".to_owned(), "2026-03-13T08:00:00Z#7".to_owned()), before, after }
    }

    #[test]
    fn only_a_payment_that_stays_in_its_place_has_to_be_in_the_list() {
        let since = "2026-03-14T10:00:00Z".parse().unwrap();
        let (scheduled, pending) = (head("SCHEDULED", DATE, 1), head("PENDING", DATE, 2));
        let made = change(8, None, Some(scheduled.clone()));
        let claims = |hour| change(hour, Some(scheduled.clone()), Some(pending.clone()));
        let leaves = |hour| change(hour, Some(pending.clone()), None);
        let elsewhere = change(9, Some(scheduled.clone()), Some(head("SCHEDULED", "2026-03-20", 2)));
        for (changes, there) in [
            (vec![made.clone()], Some(true)),
            (vec![made.clone(), claims(9)], Some(true)),
            (vec![made.clone(), claims(11)], Some(false)),
            // The payment is archived before, and meanwhile.
            (vec![made.clone(), claims(8), leaves(9)], Some(true)),
            (vec![made.clone(), claims(8), leaves(11)], Some(true)),
            (vec![change(11, None, Some(scheduled.clone()))], Some(false)),
            (vec![made, elsewhere], None),
        ] {
            let found = heads_of(&changes, DATE, since);
            assert_eq!(found.get("7").map(|known| known.is_still_there), there, "{changes:?}");
        }
    }

    #[test]
    fn a_head_is_shown_as_it_is() {
        let shown = json!({
            "accountId": "a", "payeeAccountId": "b", "amountMinor": 5, "currency": "GBP", "dueDate": DATE,
            "dueAt": "2026-03-13T08:00:00Z", "status": "PENDING", "version": 2, "paymentId": "7",
        });
        let pending = head("PENDING", DATE, 2);
        assert!(is_shown_as(&pending, &shown));
        for (field, wrong) in [
            ("accountId", json!("b")),
            ("amountMinor", json!(6)),
            ("dueAt", json!("2026-03-13T09:00:00Z")),
            ("status", json!("SCHEDULED")),
            ("version", json!(1)),
            ("settledAt", json!("2026-03-13T09:00:00Z")),
            ("reference", json!("RENT 12")),
            ("failureCode", json!("AM04")),
        ] {
            let mut shown = shown.clone();
            shown[field] = wrong;
            assert!(!is_shown_as(&pending, &shown), "{field}");
        }
    }

    #[test]
    fn counts_have_the_numbers_of_their_counters() {
        let counts = json!({
            "date": DATE, "byStatus": { "SCHEDULED": 0, "PENDING": 2 }, "total": 2, "archived": 1, "unparsed": 0,
            "sums": { "GBP": { "SCHEDULED": "0", "PENDING": "10" } },
        });
        let counter = json!({ "PENDING": { "N": "2" }, "GBP.pen": { "N": "10" }, "archived": { "N": "1" } });
        let counters = BTreeMap::from([(("COUNTS#0".to_owned(), DATE.to_owned()), counter)]);
        assert_eq!(numbers(&counts), counters::shown(&counters));
    }
}
