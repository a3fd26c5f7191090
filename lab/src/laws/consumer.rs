//! The knowledge of a consumer of the event log: the last event of each payment. The tables must agree at the end.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use fastrand::Rng;
use payments_machine::layers::attributes::{Key, number, text};
use serde_json::Value;

use crate::facts::heads::last_change;
use crate::facts::heads::{Tables, due_of, id_of};
use crate::time::CLOCKS_AGREE;

/// The knowledge of a consumer.
#[derive(Debug, Default)]
pub struct Consumer {
    /// The place of the consumer's next read; `None` is the beginning of the log.
    pub(crate) cursor: Option<String>,
    /// All events since the consumer began or began anew.
    pub(crate) seen: Vec<Value>,
    /// The events from before the consumer had to begin anew.
    pub(crate) before: Vec<Value>,
    /// The ids of the events in `seen`.
    ids: BTreeSet<String>,
    /// The last event of each payment.
    last: BTreeMap<String, Value>,
    /// The payments with an irregular change: an operator changed such a payment by hand.
    irregular: BTreeSet<String>,
    /// The number of gaps that the log marks.
    gaps: usize,
    /// The end of the time in which changes may be missing, by the last gap.
    missing_until: Option<DateTime<Utc>>,
    /// The number of places where versions are missing, by payment.
    jumps: BTreeMap<String, usize>,
    /// The number of restores that the log tells.
    pub(crate) restores: usize,
    /// Whether events may be missing before a gap says so.
    pub(crate) may_lack: bool,
}

impl Consumer {
    /// Returns a consumer that has forgotten all payments, and reads from a cursor on.
    pub(crate) fn begun_anew(self, cursor: &str) -> Self {
        let before = [self.before, self.seen].concat();
        Self { cursor: Some(cursor.to_owned()), before, may_lack: self.may_lack, ..Self::default() }
    }

    /// Takes a page of events, as `GET /events` returns pages. Returns the page's violations.
    pub fn take(&mut self, page: Value) -> Vec<String> {
        self.cursor = page["nextCursor"].as_str().map(str::to_owned);
        let events = page["events"].as_array().cloned().unwrap_or_default();
        self.seen.extend(events.iter().cloned());
        events.into_iter().filter_map(|event| self.add(event)).collect()
    }

    /// Adds an event, and checks that it comes once and that its version follows the payment's last version. Returns
    /// the violation, if there is one.
    fn add(&mut self, event: Value) -> Option<String> {
        let of = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let (id, payment) = (of("id"), of("paymentId"));
        if !self.ids.insert(id.clone()) {
            return Some(format!("event {id} is twice in the log"));
        }
        if event["type"] == "payment.irregular" {
            self.irregular.insert(payment);
            return None;
        }
        if event["type"] == "log.restored" {
            self.restores += 1;
            return None;
        }
        if event["type"] == "log.gap" {
            self.gaps += 1;
            self.missing_until = self.missing_until.max(of("until").parse().ok());
            return None;
        }
        if event["type"] == "payment.restored" {
            // A restore took back changes of the payment, or took back the payment. In the second case, the version
            // is 0.
            match event["version"] == 0 {
                true => self.last.remove(&payment),
                false => self.last.insert(payment, event),
            };
            return None;
        }
        let version = |event: &Value| event["version"].as_u64().unwrap_or(0);
        let before = self.last.get(&payment).map_or(0, version);
        let jumps = version(&event) > before + 1;
        if jumps {
            *self.jumps.entry(payment.clone()).or_default() += 1;
        }
        // Each gap of the log can leave out versions of a payment once.
        let may_jump = self.may_lack || self.jumps.get(&payment).is_some_and(|jumps| *jumps <= self.gaps);
        let follows = version(&event) == before + 1 || (jumps && may_jump);
        let problem = (!follows && !self.irregular.contains(&payment))
            .then(|| format!("{payment} has version {} in the log after {before}", version(&event)));
        self.last.insert(payment, event);
        problem
    }

    /// Returns the differences between the last events and the heads of both tables. If somebody changed payments
    /// `by_hand`, a payment can be irregular, have other content, or be gone. After a gap, events may be missing.
    #[must_use]
    pub fn differences(&self, tables: &Tables, by_hand: bool) -> Vec<String> {
        let heads = tables.heads();
        let known: BTreeSet<&str> = heads.keys().map(|key| id_of(&key.1)).collect();
        let unknown = self.last.keys().filter(|id| !known.contains(id.as_str()));
        let unknown = unknown.map(|id| format!("{id} is in the log, and in no table"));
        let irregular = self.irregular.iter().map(|id| format!("{id} is irregular, and nobody changed it by hand"));
        let untouched = unknown.chain(irregular).filter(|_| !by_hand);
        let differing = heads.iter().filter(|(key, _)| !self.irregular.contains(id_of(&key.1)));
        differing.filter_map(|(key, head)| self.difference(key, head, by_hand)).chain(untouched).collect()
    }

    /// Returns the differences between the events so far and the heads, for a check at any time: no event has a later
    /// version than its head, and an event of a head's version has the head's content.
    #[must_use]
    pub fn differences_so_far(&self, tables: &Tables) -> Vec<String> {
        let heads = tables.heads();
        let version = |event: &Value| event["version"].as_u64().unwrap_or(0);
        let known = heads.iter().filter_map(|(key, head)| Some((*key, *head, self.last.get(id_of(&key.1))?)));
        let not_behind = known.filter(|(_, head, event)| version(event) >= number(head, "version"));
        not_behind.filter_map(|(key, head, _)| self.difference(key, head, false)).collect()
    }

    /// Returns the payments that another kind of reader gets wrong. That reader gets the events in any order, and keeps
    /// the event with the highest epoch and version of each payment.
    #[must_use]
    pub fn misread(&self, random: &mut Rng) -> Vec<String> {
        let mut events: Vec<&Value> = self.seen.iter().filter(|event| event["version"].is_u64()).collect();
        random.shuffle(&mut events);
        let place = |event: &Value| (event["epoch"].as_u64(), event["version"].as_u64());
        let mut highest: BTreeMap<&str, &Value> = BTreeMap::new();
        for event in events {
            let known = highest.entry(event["paymentId"].as_str().unwrap_or_default()).or_insert(event);
            if place(event) > place(known) {
                *known = event;
            }
        }
        // An event with the version 0 says that a restore took back the payment.
        highest.retain(|_, event| event["version"] != 0);
        let all: BTreeSet<&str> = self.last.keys().map(String::as_str).chain(highest.keys().copied()).collect();
        let differs = |id: &&str| !self.irregular.contains(*id) && self.last.get(*id) != highest.get(*id).copied();
        all.into_iter().filter(differs).map(|id| format!("{id} is something else to a reader without order")).collect()
    }

    /// Whether the log marks a gap.
    #[must_use]
    pub fn has_gap(&self) -> bool {
        self.gaps > 0
    }

    fn difference(&self, key: &Key, head: &Value, by_hand: bool) -> Option<String> {
        let id = id_of(&key.1);
        let is_behind = |event: &Value| event["version"].as_u64() < Some(number(head, "version"));
        let was_in_gap = || last_change(head).is_some_and(|at| Some(at - CLOCKS_AGREE) <= self.missing_until);
        if self.has_gap() && self.last.get(id).is_none_or(is_behind) && was_in_gap() {
            return None;
        }
        let Some(event) = self.last.get(id) else { return Some(format!("{id} is not in the log")) };
        let of_event = |name: &str| event[name].as_str().unwrap_or_default();
        let has_content = || {
            event["amountMinor"] == number(head, "amountMinor")
                && key.0 == format!("ACCT#{}", of_event("accountId"))
                && due_of(head) == (of_event("dueDate"), of_event("dueAt"))
                && ["payeeAccountId", "currency", "transactionId", "failureCode", "failureReason", "reference"]
                    .into_iter()
                    .all(|name| of_event(name) == text(head, name))
        };
        let agrees = event["version"] == number(head, "version")
            && of_event("status") == text(head, "status")
            && (by_hand || has_content());
        (!agrees).then(|| format!("{id} is {event} in the log, and {head} in the table"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The event of a version; 0 is a gap.
    fn event(version: u32) -> Value {
        let kind = if version == 0 { "log.gap" } else { "payment.pending" };
        json!({ "id": format!("1-p-{version}"), "type": kind, "paymentId": "p", "version": version })
    }

    #[test]
    fn what_is_missing_twice_or_out_of_order_is_seen() {
        for (versions, want) in [
            (vec![1, 2, 3], ""),
            (vec![1, 3], "p has version 3 in the log after 1"),
            (vec![2, 1], "p has version 2 in the log after 0"),
            (vec![1, 1], "event 1-p-1 is twice in the log"),
            (vec![0, 1, 3], ""),
            (vec![0, 1, 3, 5], "p has version 5 in the log after 3"),
            (vec![0, 3, 2], "p has version 2 in the log after 3"),
        ] {
            let mut consumer = Consumer::default();
            let problems = consumer.take(json!({ "events": versions.into_iter().map(event).collect::<Vec<_>>() }));
            assert_eq!(problems.first().map_or("", String::as_str), want);
        }
    }
}
