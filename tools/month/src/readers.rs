//! Clients that read: one payment after another, lists, page by page, and the events, while everything moves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Days, TimeDelta, Utc};
use fastrand::Rng;
use payments_local::client::Request;
use serde_json::Value;

use crate::bank::Bank;
use crate::clients::{ACCOUNTS, TRIES, ask, wait};
use crate::time::pause;

/// Lets clients read until `end`.
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

/// Lists an account's payments of the days around now. Each that was accepted before must be there exactly once.
async fn list_account(bank: &Arc<Bank>, account: &str, random: &mut Rng) {
    let today = bank.time.now().date_naive();
    let (from, to) = (today - Days::new(5), today + Days::new(14));
    let within = |due_at: &str| due_at > from.to_string().as_str() && due_at < to.to_string().as_str();
    let expected: Vec<(String, u64)> = {
        let state = bank.state();
        // Dates of other zones may begin or end within a day of the list's edges.
        let of_account = state.intents.iter().filter(|intent| intent.account == account);
        let known = of_account.filter(|intent| intent.due_at().is_some_and(|due_at| within(&due_at)));
        known.filter_map(|intent| Some((intent.accepted.clone()?, intent.amount))).collect()
    };
    let told_cancelled: BTreeSet<u64> = {
        let state = bank.state();
        state.intents.iter().filter(|intent| intent.cancelled).map(|intent| intent.amount).collect()
    };
    let (first, last) = (from - Days::new(1), to + Days::new(1));
    let path = format!("/accounts/{account}/payments?from={first}&to={last}&limit={}", random.u8(2..20));
    let Some(shown) = pages(bank, &path, random).await else { return };
    let known: BTreeSet<u64> = {
        let state = bank.state();
        state.intents.iter().filter(|intent| intent.account == account).map(|intent| intent.amount).collect()
    };
    let mut times: BTreeMap<&str, u32> = BTreeMap::new();
    for payment in &shown {
        let id = payment["paymentId"].as_str().unwrap_or_default();
        let seen = times.entry(id).or_default();
        *seen += 1;
        let amount = payment["amountMinor"].as_u64().unwrap_or(0);
        let is_revived = told_cancelled.contains(&amount) && payment["status"] != "CANCELLED";
        if *seen > 1 || is_revived || !known.contains(&amount) {
            bank.complain(format!("a list of {account} shows payment {amount}, its {seen}. time: {payment}"));
        }
    }
    for (id, amount) in &expected {
        if times.get(id.as_str()) != Some(&1) {
            let seen = times.get(id.as_str()).copied().unwrap_or(0);
            bank.complain(format!("payment {amount} is {seen} times in a list of {account}"));
        }
    }
    bank.state().lists += 1;
}

/// Reads one payment that was accepted.
async fn get_one(bank: &Arc<Bank>, random: &mut Rng) {
    let accepted: Vec<_> = {
        let state = bank.state();
        state.intents.iter().filter(|intent| intent.accepted.is_some()).cloned().collect()
    };
    let Some(intent) = random.choice(accepted) else { return };
    let id = intent.accepted.unwrap_or_default();
    let path = format!("/accounts/{}/payments/{id}", intent.account);
    if let Some(payment) = get(bank, &path).await
        && (payment["amountMinor"] != intent.amount || payment["paymentId"] != id.as_str())
    {
        bank.complain(format!("payment {} is shown as {payment}", intent.amount));
    }
}

/// Lists a date's payments, and reads its counts. An index may lag, so only the answers are checked.
async fn list_date(bank: &Arc<Bank>, random: &mut Rng) {
    let date = bank.time.now().date_naive() + Days::new(random.u64(0..3)) - Days::new(1);
    let path = format!("/payments?dueDate={date}&limit={}", random.u8(5..50));
    if pages(bank, &path, random).await.is_some() {
        bank.state().lists += 1;
    }
    let _counts = get(bank, &format!("/counts?from={date}&to={date}")).await;
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
        let after = cursor.as_ref().map(|cursor| format!("&after={cursor}")).unwrap_or_default();
        let Some(page) = get(bank, &format!("/events?limit={limit}{after}")).await else { return };
        let is_end = page["hasMore"] == false;
        let mut state = bank.state();
        // Another read may have come before.
        if state.consumer.cursor != cursor {
            continue;
        }
        if let Some(oldest) = page["oldestCursor"].as_str() {
            // What it knows may be of a log that is lost.
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

/// Reads what is at a path; `None` if it cannot be had for long.
async fn get(bank: &Arc<Bank>, path: &str) -> Option<Value> {
    for tried in 0..TRIES {
        match ask(bank, &Request::get(path)).await {
            Some(reply) if reply.status == 200 => return reply.json().ok(),
            // Cursors of a log that was lost lead nowhere, and of no other.
            Some(reply) if reply.status == 410 && bank.state().lost_epoch.is_some() => return reply.json().ok(),
            Some(reply) if !reply.is_for_later() && reply.status != 500 => {
                bank.complain(format!("GET {path} was answered {}", reply.status));
                return None;
            }
            _ => wait(tried).await,
        }
    }
    None
}
