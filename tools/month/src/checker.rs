//! The checker: what must be true of payments, whatever happened. It knows the intents, what clients were told, the raw
//! tables, the changes, the messages and the files, and shares no code with the functions.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use chrono::{DateTime, Utc};
use payments_model::{PaymentId, Settlement};
use serde_json::{Value, json};

use crate::attributes::{Key, key_of, number, text};
use crate::bank::Bank;
use crate::changes::Change;
use crate::intent::Intent;
use crate::requests::Sent;

/// The legal transitions.
const LEGAL: [(&str, &str); 4] =
    [("SCHEDULED", "PENDING"), ("SCHEDULED", "CANCELLED"), ("PENDING", "PROCESSED"), ("PENDING", "FAILED")];

/// The attributes of a head that never change.
const CONSTANT: [&str; 7] = ["pk", "sk", "shard", "payeeAccountId", "amountMinor", "currency", "scheduledFor"];

/// What is in both tables.
pub(crate) struct Tables {
    pub(crate) hot: BTreeMap<Key, Value>,
    pub(crate) history: BTreeMap<Key, Value>,
}

/// The checker.
#[derive(Default)]
pub(crate) struct Checker {
    /// How many changes were checked.
    followed: usize,
    /// The requests that were checked.
    requests: usize,
    /// When each payment was pending at each dispatch attempt for the first time.
    pending: BTreeMap<(String, u64), DateTime<Utc>>,
    /// What is wrong.
    pub(crate) violations: BTreeSet<String>,
}

impl Tables {
    /// Reads both tables, past everything that fails.
    pub(crate) fn read(bank: &Bank) -> Result<Self> {
        Ok(Self { hot: scan(bank, "payments")?, history: scan(bank, "payment-history")? })
    }

    /// Returns the heads of both tables.
    pub(crate) fn heads(&self) -> BTreeMap<&Key, &Value> {
        self.history.iter().chain(&self.hot).filter(|((pk, _), _)| pk.starts_with("ACCT#")).collect()
    }
}

fn scan(bank: &Bank, table: &str) -> Result<BTreeMap<Key, Value>> {
    let (mut items, mut start) = (BTreeMap::new(), Value::Null);
    loop {
        let mut input = json!({ "TableName": table });
        if !start.is_null() {
            input["ExclusiveStartKey"] = start;
        }
        let page = bank.engine.call("Scan", &input).map_err(|error| anyhow::anyhow!("{error}"))?;
        let found = page["Items"].as_array().cloned().unwrap_or_default();
        items.extend(found.into_iter().map(|item| (key_of(&item), item)));
        start = page["LastEvaluatedKey"].clone();
        if start.is_null() {
            return Ok(items);
        }
    }
}

impl Checker {
    /// Checks the changes and the requests since the last time, and the tables.
    pub(crate) fn check(&mut self, bank: &Bank) -> Result<Tables> {
        let (begin, changes) = (self.followed, bank.changes.from(self.followed));
        self.followed += changes.len();
        let by_hand = bank.state().by_hand.places.clone();
        for (place, change) in (begin..).zip(&changes) {
            if change.key.0.starts_with("ACCT#") && !by_hand.contains(&place) {
                self.follow(change);
            }
        }
        let tables = Tables::read(bank)?;
        let intents = bank.state().intents.clone();
        self.check_heads(&tables, &intents, bank.time.now());
        let sent = bank.requests.sent();
        let checked = std::mem::replace(&mut self.requests, sent.len());
        self.check_requests(&sent[checked..], &intents);
        let complaints = std::mem::take(&mut bank.state().complaints);
        self.violations.extend(complaints);
        Ok(tables)
    }

    fn complain(&mut self, at: DateTime<Utc>, what: &str) {
        self.violations.insert(format!("{}: {what}", at.format("%F %T")));
    }

    /// Every change is legal.
    fn follow(&mut self, change: &Change) {
        let problem = match (&change.before, &change.after) {
            (None, Some(after)) => check_beginning(after),
            (Some(before), Some(after)) => check_step(before, after),
            (Some(before), None) => {
                let is_over = matches!(text(before, "status"), "PROCESSED" | "FAILED" | "CANCELLED");
                let is_reported = before.get("unreported").is_none();
                (!is_over || !is_reported).then(|| format!("is gone from the hot table as {before}"))
            }
            (None, None) => None,
        };
        if let Some(after) = change.after.as_ref().filter(|after| text(after, "status") == "PENDING") {
            let id = change.key.1.split_once('#').map_or("", |(_, id)| id);
            self.pending.entry((id.to_owned(), number(after, "dispatchAttempt"))).or_insert(change.at);
        }
        if let Some(problem) = problem {
            self.complain(change.at, &format!("{} {problem}", change.key.1));
        }
    }

    /// No payment is there twice or lost, none that nobody asked for, and what clients were told stays true.
    fn check_heads(&mut self, tables: &Tables, intents: &[Intent], now: DateTime<Utc>) {
        for (key, hot) in &tables.hot {
            if tables.history.get(key).is_some_and(|archived| archived != hot) {
                self.complain(now, &format!("the head {key:?} differs between the tables"));
            }
        }
        let mut by_amount: BTreeMap<u64, Vec<(&Key, &Value)>> = BTreeMap::new();
        for (key, head) in tables.heads() {
            by_amount.entry(number(head, "amountMinor")).or_default().push((key, head));
        }
        for intent in intents {
            let heads = by_amount.remove(&intent.amount).unwrap_or_default();
            if let Some(problem) = check_intent(intent, &heads, tables) {
                self.complain(now, &format!("payment {} {problem}", intent.amount));
            }
        }
        for amount in by_amount.keys() {
            self.complain(now, &format!("nobody asked for a payment of {amount}"));
        }
    }

    /// Each request was pending at that attempt before it was sent, and always has the same content.
    fn check_requests(&mut self, sent: &[Sent], intents: &[Intent]) {
        for Sent { at, request } in sent {
            let (id, amount) = (request["paymentId"].as_str().unwrap_or_default(), request["amountMinor"].as_u64());
            let attempt = request["dispatchAttempt"].as_u64().unwrap_or(0);
            let Some(intent) = intents.iter().find(|intent| Some(intent.amount) == amount) else {
                self.complain(*at, &format!("a request for {amount:?}, which nobody asked for"));
                continue;
            };
            let body = intent.body();
            let same =
                ["payeeAccountId", "amountMinor", "currency", "data"].iter().all(|name| request[name] == body[name]);
            if !same || request["accountId"] != intent.account.as_str() {
                self.complain(*at, &format!("payment {} was sent as {request}", intent.amount));
            }
            if self.pending.get(&(id.to_owned(), attempt)).is_none_or(|since| since > at) {
                self.complain(*at, &format!("payment {} was sent at {attempt} without being pending", intent.amount));
            }
            if intent.cancelled {
                self.complain(*at, &format!("payment {} was cancelled and sent", intent.amount));
            }
        }
    }

    /// Everything is over: every payment is settled as the service said, reported once and archived.
    pub(crate) fn check_end(&mut self, bank: &Bank, tables: &Tables, reported: &BTreeMap<String, u64>) {
        let now = bank.time.now();
        let state = bank.state();
        let settings = *state.service.settings();
        for (key, head) in tables.heads() {
            let (id, status) = (key.1.split_once('#').map_or("", |(_, id)| id), text(head, "status"));
            let said = id.parse::<PaymentId>().map(|id| settings.settlement_of(id));
            let expected = match &said {
                Ok(Settlement::Processed(_)) => "PROCESSED",
                Ok(Settlement::Failed(_)) => "FAILED",
                Err(_) => "",
            };
            let is_settled = matches!(status, "PROCESSED" | "FAILED");
            if !is_settled && status != "CANCELLED" {
                self.complain(now, &format!("{id} is {status} when everything is over"));
            }
            if is_settled && status != expected && !state.contested.contains(id) {
                self.complain(now, &format!("{id} is {status}, but the service said {expected}"));
            }
            let times = reported.get(id).copied().unwrap_or(0);
            if times != u64::from(is_settled) {
                self.complain(now, &format!("{id} is {status} and was reported {times} times"));
            }
            if tables.hot.contains_key(key) {
                self.complain(now, &format!("{id} is {status} and was not archived"));
            }
        }
        for id in reported.keys().filter(|id| !tables.heads().keys().any(|(_, sk)| sk.ends_with(id.as_str()))) {
            self.complain(now, &format!("{id} was reported and does not exist"));
        }
    }
}

fn check_intent(intent: &Intent, heads: &[(&Key, &Value)], tables: &Tables) -> Option<String> {
    if heads.len() > 1 {
        return Some(format!("is there {} times", heads.len()));
    }
    let Some((key, head)) = heads.first() else {
        return intent.accepted.as_ref().map(|id| format!("was accepted as {id} and is lost"));
    };
    if intent.refused && intent.accepted.is_none() {
        return Some("was refused and is there".to_owned());
    }
    let Some(id) = &intent.accepted else { return None };
    if !key.1.ends_with(id.as_str()) {
        return Some(format!("was accepted as {id} and is {}", key.1));
    }
    let details = tables.history.get(&(format!("PAY#{id}"), "DETAILS".to_owned()));
    if details.is_none_or(|details| number(details, "amountMinor") != intent.amount) {
        return Some(format!("has the details {details:?}"));
    }
    let status = text(head, "status");
    (intent.cancelled && status != "CANCELLED").then(|| format!("was told to be cancelled and is {status}"))
}

/// A head begins as SCHEDULED.
fn check_beginning(head: &Value) -> Option<String> {
    let good = text(head, "status") == "SCHEDULED" && number(head, "version") == 1 && is_consistent(head);
    (!good).then(|| format!("begins as {head}"))
}

/// A change is a transition, one more dispatch attempt, or the removal from `unreported`.
fn check_step(before: &Value, after: &Value) -> Option<String> {
    if let Some(name) = CONSTANT.into_iter().find(|name| before[*name] != after[*name]) {
        return Some(format!("changed its {name} from {} to {}", before[name], after[name]));
    }
    let (from, to) = (text(before, "status"), text(after, "status"));
    let (old, new) = (trail(before), trail(after));
    let (attempt, next) = (number(before, "dispatchAttempt"), number(after, "dispatchAttempt"));
    let is_redrive = from == "PENDING" && to == "PENDING" && before["version"] == after["version"];
    // A redrive skips the attempts that were missed.
    if is_redrive && old == new && next > attempt {
        return None;
    }
    let mut reported = before.clone();
    if let Some(fields) = reported.as_object_mut()
        && fields.remove("unreported").is_some()
        && reported == *after
    {
        return None;
    }
    let attempts = if to == "PENDING" { next == 1 } else { next == attempt };
    let steps = number(after, "version") == number(before, "version") + 1 && new.starts_with(old);
    let legal = LEGAL.contains(&(from, to)) && steps && attempts && is_consistent(after);
    (!legal).then(|| format!("was {from} v{} and became {after}", number(before, "version")))
}

/// Whether a head says the same in several attributes.
fn is_consistent(head: &Value) -> bool {
    let status = text(head, "status");
    let settled = matches!(status, "PROCESSED" | "FAILED");
    let last = trail(head).last().map(|entry| text(&entry["M"], "status"));
    u64::try_from(trail(head).len()).ok() == Some(number(head, "version"))
        && last == Some(status)
        && text(head, "due").starts_with(&format!("{status}#"))
        && text(head, "due").ends_with(text(head, "sk"))
        && head.get("transactionId").is_some() == (status == "PROCESSED")
        && head.get("failureReason").is_some() == (status == "FAILED")
        && head.get("unreported").is_some() == settled
        && head.get("settledAt").is_some() == settled
}

fn trail(head: &Value) -> &[Value] {
    head["trail"]["L"].as_array().map_or(&[], Vec::as_slice)
}
