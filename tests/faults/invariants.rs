//! The invariant checker: what must be true of payments, whatever happened. It knows what clients asked for and were
//! told. It reads the raw tables, the hot table's changes and all messages, and shares no code with the functions.
//!
//! It knows a payment by its amount; every intent of a test has its own.

use std::collections::BTreeMap;

use anyhow::Result;
use chrono::TimeDelta;
use daily_due_sweeper::Action;
use fastrand::Rng;
use serde_json::Value;

use crate::attributes::{Key, key_of, number, text};
use crate::fault_injector::Sent;
use crate::fixture::Fixture;
use crate::intent::Intent;
use crate::staleness::Change;

/// How far a payment must have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Any legal state.
    UnderWay,
    /// Settled or cancelled.
    Finished,
}

/// The legal transitions.
const LEGAL: [(&str, &str); 4] =
    [("SCHEDULED", "PENDING"), ("SCHEDULED", "CANCELLED"), ("PENDING", "PROCESSED"), ("PENDING", "FAILED")];

/// The attributes of a head that never change.
const CONSTANT: [&str; 7] = ["pk", "sk", "shard", "payeeAccountId", "amountMinor", "currency", "scheduledFor"];

/// The payments of one account.
struct Account<'a> {
    hot: BTreeMap<Key, Value>,
    history: BTreeMap<Key, Value>,
    /// The changes of its heads, with their positions among all changes.
    changes: Vec<(usize, &'a Change)>,
}

/// Checks the payments of these intents, all of one account. Returns what is wrong.
pub(crate) async fn violations(fixture: &Fixture, intents: &[Intent], stage: Stage) -> Result<Vec<String>> {
    let Some(Intent { account: name, .. }) = intents.first() else { return Ok(Vec::new()) };
    let (changes, sent) = (fixture.faults.staleness().changes().await?, fixture.faults.sent_for(name));
    let pk = format!("ACCT#{name}");
    let places = changes.iter().enumerate().filter(|(_, change)| change.key.0 == pk);
    let account = Account {
        hot: by_key(fixture.items(&fixture.world.environment.tables.payments, &pk).await?),
        history: by_key(fixture.items(&fixture.world.environment.tables.history, &pk).await?),
        changes: places.collect(),
    };
    let mut found = Vec::new();
    account.check_heads(intents, &mut found);
    account.check_past(&mut found);
    for intent in intents {
        account.check_intent(intent, stage, &mut found);
        check_requests(&account, intent, &sent, &mut found);
    }
    check_details(fixture, intents, &mut found).await?;
    Ok(found)
}

impl Fixture {
    /// Runs everything without faults until each of these payments is over. Returns the violations that remain.
    pub(crate) async fn finish(&self, intents: &[Intent], mut random: Option<Rng>) -> Result<Vec<String>> {
        self.time.pass(TimeDelta::seconds(61));
        for _ in 0..8 {
            self.tick(Action::Sweep).await?;
            self.dispatch_all().await?;
            self.serve(random.as_mut())?;
            self.settle_all().await?;
            let found = violations(self, intents, Stage::Finished).await?;
            if found.is_empty() {
                return Ok(found);
            }
            self.time.pass(TimeDelta::minutes(61));
            self.tick(Action::Redrive).await?;
        }
        violations(self, intents, Stage::Finished).await
    }
}

impl Account<'_> {
    /// The heads of both tables.
    fn heads(&self) -> BTreeMap<&Key, &Value> {
        self.history.iter().chain(&self.hot).collect()
    }

    /// No payment twice, and none that nobody asked for.
    fn check_heads(&self, intents: &[Intent], found: &mut Vec<String>) {
        for (key, hot) in &self.hot {
            if self.history.get(key).is_some_and(|archived| archived != hot) {
                found.push(format!("the head {key:?} differs between the tables"));
            }
        }
        for head in self.heads().into_values() {
            let amount = number(head, "amountMinor");
            if !intents.iter().any(|intent| intent.amount == amount) {
                found.push(format!("nobody asked for a payment of {amount}"));
            }
        }
    }

    /// No payment is lost, and what a client was told stays true.
    fn check_intent(&self, intent: &Intent, stage: Stage, found: &mut Vec<String>) {
        let heads = self.heads();
        let heads: Vec<_> = heads.iter().filter(|(_, head)| number(head, "amountMinor") == intent.amount).collect();
        let mut complain = |what: String| found.push(format!("payment {}: {what}", intent.amount));
        if heads.len() > 1 {
            complain(format!("is there {} times", heads.len()));
        }
        let Some((key, head)) = heads.first() else {
            if intent.accepted.is_some() {
                complain("was accepted and is lost".to_owned());
            }
            return;
        };
        if key.1.split_once('#').map(|(due_at, _)| due_at) != Some(intent.due_at.as_str()) {
            complain(format!("is due at {}", key.1));
        }
        if intent.accepted.as_ref().is_some_and(|id| !key.1.ends_with(id.as_str())) {
            complain(format!("was accepted as {:?} and is {}", intent.accepted, key.1));
        }
        let status = text(head, "status");
        if intent.cancelled && status != "CANCELLED" {
            complain(format!("was told to be cancelled and is {status}"));
        }
        if stage == Stage::Finished && !matches!(status, "PROCESSED" | "FAILED" | "CANCELLED") {
            complain(format!("is {status} when everything is over"));
        }
        let expected = if intent.amount.is_multiple_of(4) { "FAILED" } else { "PROCESSED" };
        if matches!(status, "PROCESSED" | "FAILED") && status != expected && !intent.contested {
            complain(format!("is {status}, but the service said {expected}"));
        }
    }

    /// Every change is legal.
    fn check_past(&self, found: &mut Vec<String>) {
        for (place, change) in &self.changes {
            let problem = match (&change.before, &change.after) {
                (None, Some(after)) => check_beginning(after),
                (Some(before), Some(after)) => check_step(before, after),
                (_, None) => (!self.history.contains_key(&change.key)).then(|| "is gone from both tables".to_owned()),
            };
            if let Some(problem) = problem {
                found.push(format!("change {place} of {}: {problem}", change.key.1));
            }
        }
    }
}

/// A head begins as SCHEDULED.
fn check_beginning(head: &Value) -> Option<String> {
    let good = text(head, "status") == "SCHEDULED" && number(head, "version") == 1 && is_consistent(head);
    (!good).then(|| format!("begins as {head}"))
}

/// A change is a transition, a later dispatch attempt, or the removal from `unreported`.
fn check_step(before: &Value, after: &Value) -> Option<String> {
    if let Some(name) = CONSTANT.into_iter().find(|name| before[*name] != after[*name]) {
        return Some(format!("{name} was {} and became {}", before[name], after[name]));
    }
    let (from, to) = (text(before, "status"), text(after, "status"));
    let (old, new) = (trail(before), trail(after));
    let (attempt, next) = (number(before, "dispatchAttempt"), number(after, "dispatchAttempt"));
    let is_redrive = from == "PENDING" && to == "PENDING" && before["version"] == after["version"];
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
    (!legal)
        .then(|| format!("{from} v{} became {to} v{}: {after}", number(before, "version"), number(after, "version")))
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

/// Each request was pending at that attempt before it was sent, and always has the same content.
fn check_requests(account: &Account<'_>, intent: &Intent, sent: &[Sent], found: &mut Vec<String>) {
    for Sent { request, after_changes } in sent {
        if request["amountMinor"] != intent.amount {
            continue;
        }
        let mut request = request.clone();
        let attempt = request["dispatchAttempt"].as_u64().unwrap_or(0);
        if let Some(fields) = request.as_object_mut() {
            fields.remove("dispatchAttempt");
        }
        let id = request["paymentId"].as_str().unwrap_or_default();
        if request != intent.request(id) {
            found.push(format!("payment {} was sent as {request}", intent.amount));
        }
        let pending = |(place, change): &(usize, &Change)| {
            let was_pending = |head: &Value| {
                text(head, "status") == "PENDING"
                    && number(head, "dispatchAttempt") == attempt
                    && text(head, "sk").ends_with(id)
            };
            place < after_changes && change.after.as_ref().is_some_and(was_pending)
        };
        if !account.changes.iter().any(pending) {
            found.push(format!("payment {} was sent at {attempt} without being pending", intent.amount));
        }
        if intent.cancelled {
            found.push(format!("payment {} was cancelled and sent", intent.amount));
        }
    }
}

/// The details are what the client asked for.
async fn check_details(fixture: &Fixture, intents: &[Intent], found: &mut Vec<String>) -> Result<()> {
    let ids: Vec<&str> = intents.iter().filter_map(|intent| intent.accepted.as_deref()).collect();
    let details = fixture.details(&ids).await?;
    for intent in intents {
        let Some(id) = &intent.accepted else { continue };
        let own = details.iter().filter(|details| text(details, "pk") == format!("PAY#{id}"));
        let amounts: Vec<u64> = own.map(|details| number(details, "amountMinor")).collect();
        if amounts != [intent.amount] {
            found.push(format!("payment {} has details of {amounts:?}", intent.amount));
        }
    }
    Ok(())
}

fn by_key(items: Vec<Value>) -> BTreeMap<Key, Value> {
    items.into_iter().map(|item| (key_of(&item), item)).collect()
}

fn trail(head: &Value) -> &[Value] {
    head["trail"]["L"].as_array().map_or(&[], Vec::as_slice)
}
