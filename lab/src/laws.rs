//! What must be true of payments, whatever happened: of their heads in both tables, of each change of a head, and of
//! each request to the transaction service.
//!
//! It shares no code with the functions, but ids. It knows a payment by its amount, which every intent has for itself, and each of its
//! amendments that has another one.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use payments_machine::layers::attributes::{Key, number, text};
use payments_model::Settlement;
use serde_json::Value;

use crate::facts::heads::{Tables, due_of, id_of, is_of_head, is_settled};
use crate::facts::intent::Intent;

mod amended;
pub(crate) mod amended_events;
pub mod calls;
pub mod consumer;
pub mod counters;
pub(crate) mod event_origins;
pub mod journal;
pub mod reports;
pub(crate) mod steps;

pub(crate) use amended::count as amendments;

/// The legal transitions.
const LEGAL: [(&str, &str); 4] =
    [("SCHEDULED", "PENDING"), ("SCHEDULED", "CANCELLED"), ("PENDING", "PROCESSED"), ("PENDING", "FAILED")];

/// The attributes of a head that only an amendment changes, if anything does.
const CONSTANT: [&str; 10] =
    ["pk", "sk", "shard", "payeeAccountId", "amountMinor", "currency", "scheduledFor", "reference", "details", "moved"];

/// How far the clocks of sandboxes are ahead at most.
pub(crate) const CLOCKS_AGREE: TimeDelta = TimeDelta::seconds(3);

/// Checks that no payment is there twice or lost, and none that nobody asked for, and that what clients were told stays
/// true. Returns what is wrong.
#[must_use]
pub fn check_heads(tables: &Tables, intents: &[Intent]) -> Vec<String> {
    let mut found = Vec::new();
    for (key, hot) in &tables.hot {
        if let Some(problem) = check_both(hot, tables.history.get(key)).filter(|_| is_of_head(&key.0)) {
            found.push(format!("the head {key:?} {problem}"));
        }
    }
    let amounts = intents
        .iter()
        .enumerate()
        .flat_map(|(place, intent)| intent.amounts().into_iter().zip(std::iter::repeat(place)));
    let owners: BTreeMap<u64, usize> = amounts.collect();
    let mut heads_of: BTreeMap<usize, Vec<(&Key, &Value)>> = BTreeMap::new();
    for (key, head) in tables.heads() {
        let amount = number(head, "amountMinor");
        match owners.get(&amount) {
            Some(owner) => heads_of.entry(*owner).or_default().push((key, head)),
            None => found.push(format!("nobody asked for a payment of {amount}")),
        }
    }
    for (place, intent) in intents.iter().enumerate() {
        let heads = heads_of.remove(&place).unwrap_or_default();
        if let Some(problem) = check_intent(intent, &heads, tables) {
            found.push(format!("payment {} {problem}", intent.amount));
        }
    }
    let owner = |amount| owners.get(&amount).and_then(|place| intents.get(*place));
    found.extend(tables.history.iter().filter_map(|(key, details)| amended::check_details(key, details, owner)));
    found
}

/// Returns a head of the hot table as the long-term table has it: without what only the hot table says.
#[must_use]
pub fn as_in_history(hot: &Value) -> Value {
    let mut head = hot.clone();
    for name in ["unreported", "expires_at"] {
        head.as_object_mut().into_iter().for_each(|head| drop(head.remove(name)));
    }
    head
}

/// Checks that a head in both tables is the same, or pending in the hot table while the long-term table has its settlement, and
/// that a settled one is in both. Returns what is wrong.
fn check_both(hot: &Value, history: Option<&Value>) -> Option<String> {
    let Some(history) = history else {
        return is_settled(text(hot, "status")).then(|| format!("is settled, and not in the long-term table: {hot}"));
    };
    let steps = number(history, "version") == number(hot, "version") + 1 && trail(history).starts_with(trail(hot));
    let follows = steps
        && due_of(hot) == due_of(history)
        && text(hot, "status") == "PENDING"
        && is_settled(text(history, "status"))
        && CONSTANT.iter().all(|name| hot[*name] == history[*name]);
    (as_in_history(hot) != *history && !follows).then(|| format!("differs between the tables: {hot} and {history}"))
}

fn check_intent(intent: &Intent, heads: &[(&Key, &Value)], tables: &Tables) -> Option<String> {
    if heads.len() > 1 {
        return Some(format!("is there {} times", heads.len()));
    }
    let Some(((pk, sk), head)) = heads.first() else {
        return intent.accepted.as_ref().map(|id| format!("was accepted as {id} and is lost"));
    };
    if intent.refused && intent.accepted.is_none() {
        return Some("was refused and is there".to_owned());
    }
    if *pk != format!("ACCT#{}", intent.account) {
        return Some(format!("is of the account {} and lies in {pk}", intent.account));
    }
    if intent.slot_at().is_some_and(|slot_at| sk.strip_prefix(&slot_at).is_none_or(|rest| !rest.starts_with('#'))) {
        return Some(format!("is to be made at {} and is {sk}", intent.scheduled_for));
    }
    let Some(wanted) = intent.in_force(id_of(sk), text(head, "details")) else {
        return Some(format!("was amended as nobody asked for: {head}"));
    };
    let status = text(head, "status");
    let due = wanted.due_date().zip(wanted.due_at());
    if due.is_some_and(|(date, at)| text(head, "due") != format!("{status}#{date}#{at}#{}", id_of(sk))) {
        return Some(format!("is to be made at {} and is due at {}", wanted.scheduled_for, text(head, "due")));
    }
    if !amended::has_content(head, &wanted) {
        return Some(format!("is there as {head}"));
    }
    if let Some(problem) = amended::check_chain(intent, id_of(sk), head, tables) {
        return Some(problem);
    }
    if intent.cancelled && status != "CANCELLED" {
        return Some(format!("was told to be cancelled and is {status}"));
    }
    let id = intent.accepted.as_ref()?;
    if id_of(sk) != id {
        return Some(format!("was accepted as {id} and is {sk}"));
    }
    let details = tables.history.get(&(format!("PAY#{id}"), "DETAILS".to_owned()));
    let right = details.is_some_and(|details| {
        number(details, "amountMinor") == intent.amount && text(details, "payeeAccountId") == intent.payee
    });
    (!right).then(|| format!("has the details {details:?}"))
}

/// Checks that a head is settled or cancelled for good. Returns what is wrong.
#[must_use]
pub fn check_over(head: &Value) -> Option<String> {
    let status = text(head, "status");
    (!is_settled(status) && status != "CANCELLED").then(|| format!("is {status} when everything is over"))
}

/// Checks that a head is settled, if at all, as the transaction service said: with the transaction's id, or the code and the reason.
/// Returns what is wrong.
#[must_use]
pub fn check_settlement(head: &Value, said: &Settlement, is_contested: bool) -> Option<String> {
    let is = ["status", "transactionId", "failureCode", "failureReason"].map(|name| text(head, name));
    let said = match said {
        Settlement::Processed(id) => ["PROCESSED", id.as_str(), "", ""],
        Settlement::Failed(failure) => ["FAILED", "", failure.code().as_str(), failure.reason()],
    };
    let wrong = is_settled(is[0]) && is != said && !is_contested;
    wrong.then(|| format!("is {is:?}, but the service said {said:?}"))
}

/// Checks a change of a head: it begins, takes a step, or leaves the hot table. Returns what is wrong.
#[must_use]
pub fn check_change(before: Option<&Value>, after: Option<&Value>) -> Option<String> {
    match (before, after) {
        (None, Some(after)) => check_beginning(after),
        (Some(before), Some(after)) => check_step(before, after),
        (Some(before), None) => check_leaving(before),
        (None, None) => None,
    }
}

/// A head begins as SCHEDULED, and due at its slot.
fn check_beginning(head: &Value) -> Option<String> {
    let is_at_slot = text(head, "due").ends_with(text(head, "sk"));
    let good = text(head, "status") == "SCHEDULED" && number(head, "version") == 1 && is_at_slot && is_consistent(head);
    (!good).then(|| format!("begins as {head}"))
}

/// A step is an amendment, a transition, a later dispatch attempt, or the removal from `unreported`, after which a settled head expires.
fn check_step(before: &Value, after: &Value) -> Option<String> {
    if before["details"] != after["details"] {
        return amended::check_step(before, after, is_consistent(after));
    }
    if let Some(name) = CONSTANT.into_iter().find(|name| before[*name] != after[*name]) {
        return Some(format!("changed its {name} from {} to {}", before[name], after[name]));
    }
    if due_of(before) != due_of(after) {
        return Some(format!("was due at {:?} and is due at {:?}", due_of(before), due_of(after)));
    }
    let (from, to) = (text(before, "status"), text(after, "status"));
    let (old, new) = (trail(before), trail(after));
    let (attempt, next) = (number(before, "dispatchAttempt"), number(after, "dispatchAttempt"));
    let is_redrive = from == "PENDING" && to == "PENDING" && before["version"] == after["version"];
    // A redrive skips the attempts that were missed, and changes nothing else.
    if is_redrive && next > attempt {
        let mut redriven = before.clone();
        redriven["dispatchAttempt"] = after["dispatchAttempt"].clone();
        return (redriven != *after).then(|| format!("was redriven as {before} and became {after}"));
    }
    if before.get("unreported").is_some() && as_in_history(before) == as_in_history(after) {
        return after.get("unreported").is_some().then(|| format!("was reported as {before} and became {after}"));
    }
    // A redrive between the two writes of a settlement is forgotten.
    let attempts = if to == "PENDING" { next == 1 } else { next <= attempt };
    let steps = number(after, "version") == number(before, "version") + 1 && new.starts_with(old);
    let is_last_amendment = before["amended"] == after["amended"] || is_settled(to);
    let legal = LEGAL.contains(&(from, to)) && steps && attempts && is_last_amendment && is_consistent(after);
    let (old, new) = (number(before, "version"), number(after, "version"));
    (!legal).then(|| format!("was {from} v{old} and became {to} v{new}: {after}"))
}

/// A head leaves when it is over and reported.
fn check_leaving(head: &Value) -> Option<String> {
    let good = check_over(head).is_none() && head.get("unreported").is_none();
    (!good).then(|| format!("is gone from the hot table as {head}"))
}

/// Whether a head says the same in several attributes.
fn is_consistent(head: &Value) -> bool {
    let status = text(head, "status");
    let settled = is_settled(status);
    let last = trail(head).last().map(|entry| text(&entry["M"], "status"));
    let changes = u64::try_from(trail(head).len()).unwrap_or(0) + amended::count(text(head, "details"));
    changes == number(head, "version")
        && amended::is_consistent(head)
        && last == Some(status)
        && text(head, "due").starts_with(&format!("{status}#"))
        && text(head, "due").ends_with(&format!("#{}", id_of(text(head, "sk"))))
        && head.get("transactionId").is_some() == (status == "PROCESSED")
        && ["failureCode", "failureReason"].iter().all(|name| head.get(*name).is_some() == (status == "FAILED"))
        && head.get("unreported").is_some() == settled
        && head.get("expires_at").is_none()
        && head.get("settledAt").is_some() == settled
}

/// When a head last changed, by its trail.
pub(crate) fn last_change(head: &Value) -> Option<DateTime<Utc>> {
    text(&trail(head).last()?["M"], "at").parse().ok()
}

fn trail(head: &Value) -> &[Value] {
    head["trail"]["L"].as_array().map_or(&[], Vec::as_slice)
}

/// Checks that a request is that of an intent, and that the payment was not cancelled. Returns what is wrong.
#[must_use]
pub fn check_request(intent: &Intent, request: &Value) -> Option<String> {
    if *request != intent.request(request) {
        return Some(format!("was sent as {request}"));
    }
    intent.cancelled.then(|| "was cancelled and sent".to_owned())
}

/// Checks a write to a head: the condition of a transition repeats status, version and due key, and that of an amendment the due key. That
/// it forgets the due key shows nowhere else, because a payment that gets another one gets another version, too. Returns what is wrong.
#[must_use]
pub fn check_write(operation: &str, input: &Value) -> Option<String> {
    let values = &input["ExpressionAttributeValues"];
    let is_transition =
        operation == "UpdateItem" && is_of_head(text(&input["Key"], "pk")) && values[":due"].is_object();
    let condition = input["ConditionExpression"].as_str()?;
    let clauses: &[&str] =
        if values[":details"].is_object() { &["due = "] } else { &["#status = ", "version = ", "due = "] };
    let repeats = clauses.iter().all(|clause| condition.contains(clause));
    (is_transition && !repeats).then(|| format!("a transition has the condition {condition}"))
}

/// When each payment was pending at each dispatch attempt for the first time, and when it ceased to be, on any scale that
/// goes up.
#[derive(Debug)]
pub struct Pending<When> {
    since: BTreeMap<(String, u64), When>,
    until: BTreeMap<String, When>,
    /// The amendments that were in force when each payment was pending: one, but where a restore took back a claim.
    amendments: BTreeMap<String, BTreeSet<String>>,
}

impl<When> Default for Pending<When> {
    fn default() -> Self {
        Self { since: BTreeMap::new(), until: BTreeMap::new(), amendments: BTreeMap::new() }
    }
}

impl<When: Ord> Pending<When> {
    /// Follows a change of a head.
    pub fn follow(&mut self, key: &Key, after: Option<&Value>, at: When) {
        if let Some(after) = after.filter(|after| text(after, "status") == "PENDING") {
            let attempt = (id_of(&key.1).to_owned(), number(after, "dispatchAttempt"));
            self.amendments.entry(attempt.0.clone()).or_default().insert(text(after, "details").to_owned());
            self.since.entry(attempt).or_insert(at);
        } else if after.is_some_and(|after| is_settled(text(after, "status"))) {
            self.until.entry(id_of(&key.1).to_owned()).or_insert(at);
        }
    }

    /// Returns when a payment ceased to be pending.
    #[must_use]
    pub fn until(&self, id: &str) -> Option<&When> {
        self.until.get(id)
    }

    /// Returns what was wanted of a payment when it was claimed.
    pub fn claimed<'p>(&'p self, id: &'p str, intent: &'p Intent) -> impl Iterator<Item = Intent> + 'p {
        self.amendments.get(id).into_iter().flatten().filter_map(move |name| intent.in_force(id, name))
    }

    /// Checks that a request's payment was pending at its attempt before it was sent. Returns what is wrong.
    #[must_use]
    pub fn check(&self, request: &Value, sent: &When) -> Option<String> {
        let (id, attempt) = (request["paymentId"].as_str()?, request["dispatchAttempt"].as_u64()?);
        let since = self.since.get(&(id.to_owned(), attempt));
        since.is_none_or(|since| since > sent).then(|| format!("was sent at {attempt} without being pending"))
    }
}
