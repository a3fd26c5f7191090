//! Clients that read: one payment after another, lists, page by page, and the events, while everything moves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Days, TimeDelta, Utc};
use fastrand::Rng;
use payments_machine::client::{Reply, Request};
use payments_machine::layers::attributes::{number, text};
use serde_json::Value;

use crate::checks::dates;
use crate::checks::redated;
use crate::facts::heads::{due_of, id_of};
use crate::facts::intent::Intent;
use crate::time::pause;
use crate::workloads::clients::{ACCOUNTS, asked};
use crate::world::bank::Bank;
use crate::world::lag;

/// The time, beyond an index's standstill, after which a list shows a payment at its due time.
const STILL: TimeDelta = TimeDelta::minutes(1);

/// Reads, as clients, until `end`.
pub(crate) async fn run(bank: Arc<Bank>, end: DateTime<Utc>) {
    let mut random = bank.seed.source("readers");
    while bank.time.now() < end {
        pause(TimeDelta::minutes(random.i64(30..180))).await;
        let account = format!("acc-{}", random.usize(0..ACCOUNTS));
        match random.u8(0..4) {
            0 | 1 => list_account(&bank, &account, &mut random).await,
            2 => get_one(&bank, &mut random).await,
            _ => list_date(&bank, &mut random).await,
        }
    }
}

/// Lists an account's payments of the days around now. Each that was accepted before, and is due when it was a while ago, must be there
/// exactly once, at its due time. One that moves can be seen at both of its places, or at none.
async fn list_account(bank: &Arc<Bank>, account: &str, random: &mut Rng) {
    let today = bank.time.now().date_naive();
    let (from, to) = (today - Days::new(5), today + Days::new(14));
    let within = |due_at: &str| due_at > from.to_string().as_str() && due_at < to.to_string().as_str();
    let (began, before) = (bank.time.now(), of_account(bank, account));
    // Dates of other zones may begin or end within a day of the list's edges.
    let (first, last) = (from - Days::new(1), to + Days::new(1));
    let path = format!("/accounts/{account}/payments?from={first}&to={last}&limit={}", random.u8(2..20));
    let Some(shown) = pages(bank, &path, random).await else { return };
    let moving = moving_since(bank, began - lag::LONGEST - STILL);
    redated::learn(bank);
    let known = of_account(bank, account);
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for payment in &shown {
        let of = |name: &str| payment[name].as_str().unwrap_or_default();
        let id = of("paymentId");
        let seen = places.entry(id).or_default();
        seen.push(of("dueAt"));
        let told = before.iter().find(|(_, intent)| intent.has_amount(&payment["amountMinor"]));
        let is_revived = told.is_some_and(|(_, intent)| intent.cancelled) && of("status") != "CANCELLED";
        let is_known = known.iter().any(|(_, intent)| intent.is_shown_as(payment));
        if (seen.len() > 1 && !moving.contains(id)) || is_revived || !is_known {
            let (amount, times) = (&payment["amountMinor"], seen.len());
            bank.complain(format!("a list of {account} shows payment {amount}, its {times}. time: {payment}"));
        }
    }
    for (place, intent) in &before {
        let Some(id) = intent.accepted.as_deref().filter(|id| !moving.contains(*id)) else { continue };
        let Some(head) = bank.head_of(*place) else { continue };
        let seen = places.get(id).map_or(&[][..], Vec::as_slice);
        if within(due_of(&head).1) && seen != [due_of(&head).1] {
            let amount = intent.amount;
            let due_at = due_of(&head).1;
            let times = seen.len();
            bank.complain(format!(
                "payment {amount} is {times} times in a list of {account}, and due at {due_at}: {seen:?}"
            ));
        }
    }
    check_order(bank, account, &shown);
    bank.state().lists += 1;
}

/// Returns what an account's clients have asked for, with its place. A payment of another account is not known in its list.
fn of_account(bank: &Bank, account: &str) -> Vec<(usize, Intent)> {
    let state = bank.state();
    let intents = state.intents.iter().enumerate().filter(|(_, intent)| intent.account == account);
    intents.map(|(place, intent)| (place, intent.clone())).collect()
}

/// Each payment of a list comes after the one before it.
fn check_order(bank: &Bank, account: &str, shown: &[Value]) {
    let place =
        |payment: &Value| ["dueAt", "paymentId"].map(|name| payment[name].as_str().unwrap_or_default().to_owned());
    let places: Vec<[String; 2]> = shown.iter().map(place).collect();
    if let Some([before, after]) = places.array_windows().find(|[before, after]| before >= after) {
        bank.complain(format!("a list of {account} shows {after:?} after {before:?}"));
    }
}

/// Returns the payments that were due at another time since an instant.
fn moving_since(bank: &Bank, since: DateTime<Utc>) -> BTreeSet<String> {
    let changes = bank.changes.log();
    let recent = changes.iter().rev().take_while(|change| change.at > since);
    let moves = recent.filter(|change| match (&change.before, &change.after) {
        (Some(before), Some(after)) => due_of(before) != due_of(after),
        _ => false,
    });
    moves.map(|change| id_of(&change.key.1).to_owned()).collect()
}

/// Reads one payment that was accepted.
async fn get_one(bank: &Arc<Bank>, random: &mut Rng) {
    let accepted: Vec<usize> = {
        let state = bank.state();
        let places = state.intents.iter().enumerate().filter(|(_, intent)| intent.accepted.is_some());
        places.map(|(place, _)| place).collect()
    };
    let Some(place) = random.choice(accepted) else { return };
    let intent = bank.intent(place);
    let id = intent.accepted.unwrap_or_default();
    let path = format!("/accounts/{}/payments/{id}", intent.account);
    let began = bank.time.now();
    let Some(payment) = get(bank, &path).await else { return };
    redated::learn(bank);
    if !may_be_lost(bank, &path) && !bank.heads_since(place, began).iter().any(|head| is_state_of(&payment, head)) {
        bank.complain(format!("payment {} was never as it is shown: {payment}", intent.amount));
    }
    if payment["paymentId"] != id.as_str() || !bank.state().intents[place].is_shown_as(&payment) {
        bank.complain(format!("payment {} is shown as {payment}", intent.amount));
    }
}

/// Whether a payment is shown in the state that a head has.
fn is_state_of(payment: &Value, head: &Value) -> bool {
    let shown = |name: &str| payment[name].as_str().unwrap_or_default();
    payment["version"] == number(head, "version")
        && ["status", "transactionId", "failureCode", "failureReason", "settledAt"]
            .iter()
            .all(|name| shown(name) == text(head, name))
}

/// Reads sealed payments, which must be shown as their rows have them. Returns those that are not.
pub(crate) async fn check_sealed(bank: &Arc<Bank>, sealed: &[Value]) -> Vec<String> {
    let mut differ = Vec::new();
    for row in sealed {
        let [account, id] = ["accountId", "paymentId"].map(|name| row[name].as_str().unwrap_or_default());
        let path = format!("/accounts/{account}/payments/{id}");
        let mut shown = get(bank, &path).await.unwrap_or_default();
        if row.get("versions").is_some() {
            let versions = get(bank, &format!("{path}/versions?include=data")).await.unwrap_or_default();
            shown["versions"] = versions["versions"].clone();
        }
        if shown != *row {
            differ.push(format!("{id} is sealed as {row} and shown as {shown}"));
        }
    }
    differ
}

/// Lists a date's payments, and reads its counts.
async fn list_date(bank: &Arc<Bank>, random: &mut Rng) {
    let date = bank.time.now().date_naive() + Days::new(random.u64(0..3)) - Days::new(1);
    let path = format!("/payments?dueDate={date}&limit={}", random.u8(5..50));
    let (began, day) = (bank.time.now(), date.to_string());
    if let Some(shown) = pages(bank, &path, random).await {
        dates::check_list(bank, &day, began, &shown);
        bank.state().lists += 1;
    }
    let began = bank.time.now();
    if let Some(counts) = get(bank, &format!("/counts?from={date}&to={date}")).await {
        dates::check_counts(bank, &day, began, &counts);
    }
}

/// Reads a list to its end, with waits between its pages.
async fn pages(bank: &Arc<Bank>, path: &str, random: &mut Rng) -> Option<Vec<Value>> {
    let (mut shown, mut cursor) = (Vec::new(), None);
    loop {
        let page = match &cursor {
            None => get(bank, path).await?,
            Some(cursor) => get(bank, &format!("{path}&cursor={cursor}")).await?,
        };
        shown.extend(page["payments"].as_array().cloned().unwrap_or_default());
        let Some(next) = page["nextCursor"].as_str() else { return Some(shown) };
        cursor = Some(next.to_owned());
        pause(TimeDelta::milliseconds(random.i64(100..60_000))).await;
    }
}

/// Follows the event log for good, outside of the bank: asks for what comes after its cursor, with waits between.
pub(crate) async fn follow_events(bank: Arc<Bank>) {
    let mut random = bank.seed.source("consumer");
    loop {
        pause(TimeDelta::minutes(random.i64(1..240))).await;
        read_events(&bank, random.u16(1..200)).await;
    }
}

/// Reads to the end of the log, or until it cannot be had for long.
pub(crate) async fn read_events(bank: &Arc<Bank>, limit: u16) {
    loop {
        let cursor = bank.state().consumer.cursor.clone();
        let after = cursor.as_ref().map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let Some(page) = get(bank, &format!("/events?limit={limit}{after}")).await else { return };
        let is_end = page["hasMore"] == false;
        let mut state = bank.state();
        // Another read may have come before.
        if state.consumer.cursor != cursor {
            continue;
        }
        if let Some(oldest) = page["oldestCursor"].as_str() {
            // The consumer's events may be of a log that is lost.
            let epoch = cursor.as_ref().and_then(|cursor| cursor.split('.').next()?.parse::<u64>().ok());
            if epoch > state.lost_epoch {
                state.complaints.push(format!("the cursor {cursor:?} is gone, and the log was lost before it"));
            }
            state.consumer = std::mem::take(&mut state.consumer).begun_anew(oldest);
            continue;
        }
        let problems = state.consumer.take(page);
        state.complaints.extend(problems);
        if is_end {
            return;
        }
    }
}

/// Whether a restore may have left nothing of the payment at a path meanwhile.
fn may_be_lost(bank: &Bank, path: &str) -> bool {
    let id = path.rsplit('/').next().unwrap_or_default();
    bank.switches.is_restoring() || bank.state().lost.contains(id)
}

/// Reads what is at a path; `None` if it cannot be had for long, or is lost.
pub(crate) async fn get(bank: &Arc<Bank>, path: &str) -> Option<Value> {
    let answered = |reply: Reply| match reply.status {
        200 => Some(reply.json().ok()),
        // Cursors of a log that was lost lead nowhere, and of no other.
        410 if bank.state().lost_epoch.is_some() => Some(reply.json().ok()),
        404 if may_be_lost(bank, path) => Some(None),
        429 | 500.. => None,
        status => {
            bank.complain(format!("GET {path} was answered {status}"));
            Some(None)
        }
    };
    asked(bank, &Request::get(path), answered).await?
}
