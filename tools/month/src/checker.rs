//! The checker: what must be true of payments, whatever happened. It knows the intents, what clients were told, the raw
//! tables, the changes, the messages and the files, and shares no code with the functions.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use payments_model::{PaymentId, Settlement};
use serde_json::{Value, json};

use crate::attributes::{Key, key_of, number, text};
use crate::bank::Bank;
use crate::changes::Change;
use crate::intent::Intent;
use crate::laws::{self, Pending, Tables, id_of, is_of_head, is_settled};
use crate::requests::Sent;

/// How far the clocks of sandboxes are ahead at most.
const CLOCKS_AGREE: TimeDelta = TimeDelta::seconds(3);

/// The checker.
#[derive(Default)]
pub(crate) struct Checker {
    /// How many changes were checked.
    followed: usize,
    /// The requests that were checked.
    requests: usize,
    /// When each payment was pending at each dispatch attempt for the first time.
    pending: Pending<DateTime<Utc>>,
    /// The most dispatch attempts of a payment, if no operator changes them.
    attempts: Option<u32>,
    /// What is wrong.
    pub(crate) violations: BTreeSet<String>,
}

/// Reads both tables, past everything that fails.
pub(crate) fn tables(bank: &Bank) -> Result<Tables> {
    Ok(Tables { hot: scan(bank, "payments")?, history: scan(bank, "payment-history")? })
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
    /// Creates a checker of payments that have at most so many dispatch attempts.
    pub(crate) fn new(attempts: Option<u32>) -> Self {
        Self { attempts, ..Self::default() }
    }

    /// A payment has so many dispatch attempts, and no more.
    fn check_attempt(&self, request: &Value) -> Option<String> {
        let (attempt, most) = (request["dispatchAttempt"].as_u64()?, self.attempts?);
        (attempt > most.into()).then(|| format!("was sent at {attempt}, and {most} is the last"))
    }

    /// Checks the changes and the requests since the last time, and the tables.
    pub(crate) fn check(&mut self, bank: &Bank) -> Result<Tables> {
        let (begin, changes) = (self.followed, bank.changes.from(self.followed));
        self.followed += changes.len();
        let by_hand = bank.state().by_hand.places.clone();
        for (place, change) in (begin..).zip(&changes) {
            if is_of_head(&change.key.0) && !by_hand.contains(&place) {
                self.follow(change);
            }
        }
        let tables = tables(bank)?;
        let intents = bank.state().intents.clone();
        let now = bank.time.now();
        laws::check_heads(&tables, &intents).iter().for_each(|problem| self.complain(now, problem));
        let sent = bank.requests.from(self.requests);
        self.requests += sent.len();
        self.check_requests(&sent, &intents);
        let complaints = std::mem::take(&mut bank.state().complaints);
        self.violations.extend(complaints);
        self.violations.extend(bank.network.complaints());
        Ok(tables)
    }

    fn complain(&mut self, at: DateTime<Utc>, what: &str) {
        self.violations.insert(format!("{}: {what}", at.format("%F %T")));
    }

    /// Every change is legal.
    fn follow(&mut self, change: &Change) {
        self.pending.follow(&change.key, change.after.as_ref(), change.at);
        if let Some(problem) = laws::check_change(change.before.as_ref(), change.after.as_ref()) {
            self.complain(change.at, &format!("{} {problem}", change.key.1));
        }
    }

    /// Each request was pending at that attempt before it was sent, and always has the same content.
    fn check_requests(&mut self, sent: &[Sent], intents: &[Intent]) {
        for Sent { at, request } in sent {
            let amount = request["amountMinor"].as_u64();
            let Some(intent) = intents.iter().find(|intent| Some(intent.amount) == amount) else {
                self.complain(*at, &format!("a request that nobody asked for: {request}"));
                continue;
            };
            let problems = [
                laws::check_request(intent, request),
                self.pending.check(request, at),
                self.check_attempt(request),
                check_time(request, *at),
            ];
            for problem in problems.into_iter().flatten() {
                self.complain(*at, &format!("payment {} {problem}", intent.amount));
            }
        }
    }

    /// Everything is over: every payment is settled as the service said, reported once and archived.
    pub(crate) fn check_end(&mut self, bank: &Bank, tables: &Tables, reported: &BTreeMap<String, u64>) {
        let now = bank.time.now();
        let state = bank.state();
        let settings = *state.service.settings();
        let contested: BTreeSet<u64> =
            state.intents.iter().filter(|intent| intent.contested).map(|intent| intent.amount).collect();
        for (key, head) in tables.heads() {
            let (id, status) = (id_of(&key.1), text(head, "status"));
            let said = match id.parse::<PaymentId>().map(|id| settings.settlement_of(id)) {
                Ok(Settlement::Processed(_)) => "PROCESSED",
                Ok(Settlement::Failed(_)) => "FAILED",
                Err(_) => "",
            };
            let is_contested = contested.contains(&number(head, "amountMinor"));
            let problems = [laws::check_over(head), laws::check_settlement(head, said, is_contested)];
            for problem in problems.into_iter().flatten() {
                self.complain(now, &format!("{id} {problem}"));
            }
            let times = reported.get(id).copied().unwrap_or(0);
            if times != u64::from(is_settled(status)) {
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

/// No request is sent before its payment is due, as far as clocks agree.
fn check_time(request: &Value, at: DateTime<Utc>) -> Option<String> {
    let due_at: DateTime<Utc> = request["dueAt"].as_str()?.parse().ok()?;
    (at + CLOCKS_AGREE < due_at).then(|| format!("is due at {due_at} and was sent at {at}"))
}
