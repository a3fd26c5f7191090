//! Dates are closed on which payments are due: in some months an operator moves them, as docs/operations.md says.
//!
//! The months' clients create and amend in a bank without calendars, and only `redate` has one, of pounds.

use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, ensure};
use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use payments_machine::Environment;
use payments_machine::layers::attributes::text;
use payments_machine::layers::random::{Seed, happens};
use payments_model::redate::{ACTION, fields};
use serde_json::{Value, json};
use tokio::task::spawn_local;

use crate::checks::checker::scan;
use crate::facts::closed_dates::{is_closed, opens_after};
use crate::facts::heads::{due_of, id_of, is_of_head};
use crate::plans::faults::FaultKind;
use crate::settings::Settings;
use crate::time::pause;
use crate::workloads::approvals::{BOTH, approved};
use crate::world::bank::Bank;
use crate::world::lag;

/// Shorter months have no redate.
const LEAST_DAYS: u32 = 9;

/// In how many of a thousand months there is one.
const PER_THOUSAND: u16 = 600;

/// The days before the month's end without closed dates, so that moved payments are still settled.
const LEFT_OPEN: u32 = 5;

/// The most dates of one run.
const MOST_DATES: u64 = 34;

/// From how many days before today on payments are moved by an operator who begins with the past: the sweep may have been paused then.
const DAYS_BACK: u64 = 2;

/// The most tries of a run, which fails or is killed now and then.
const TRIES: u32 = 60;

/// Whether a month has a redate.
pub(crate) fn are_in(settings: &Settings, seed: Seed) -> bool {
    settings.days >= LEAST_DAYS
        && settings.outages.is_empty()
        && !settings.without.contains(&FaultKind::DatesClosed)
        && happens(&mut seed.source("redates in the month"), PER_THOUSAND)
}

/// Returns the settings of a bank whose calendar has closed Saturdays since. Its rule is that of all payments.
pub fn closing(environment: &Environment) -> Environment {
    let (calendars, date_rule) = ("GBP=GB".to_owned(), "following".to_owned());
    Environment { calendars, date_rule, ..environment.clone() }
}

/// Starts the operator who moves payments.
pub(crate) fn start(bank: &Arc<Bank>, days: u32) {
    if bank.redates {
        spawn_local(run(Arc::clone(bank), days));
    }
}

async fn run(bank: Arc<Bank>, days: u32) {
    let mut random = bank.seed.source("redates");
    let last = bank.begin + TimeDelta::days(i64::from(days - LEFT_OPEN));
    loop {
        pause(TimeDelta::minutes(random.i64(1_440..5 * 1_440))).await;
        if !bank.faults.has(FaultKind::DatesClosed) || bank.time.now() > last {
            return;
        }
        bank.faults.count(FaultKind::DatesClosed);
        bank.busy_with(move_all(&bank, (random.bool(), last)), "a redate failed").await;
    }
}

/// Looks, then moves until nothing is left, and once more when the index must have caught up.
async fn move_all(bank: &Arc<Bank>, (from_past, last): (bool, DateTime<Utc>)) -> Result<()> {
    let date_of = |at: DateTime<Utc>| bank.tz.date_of(at).context("a date");
    let earliest = || anyhow::Ok(date_of(bank.time.now())? - Days::new(DAYS_BACK));
    let begin = if from_past { earliest()? } else { date_of(bank.time.now())? + Days::new(1) };
    let to = date_of(last)?.min(begin + Days::new(MOST_DATES));
    let mut done = 0;
    while done < 2 {
        // The run may have been tried for days.
        let from = begin.max(earliest()?);
        if to < from {
            return Ok(());
        }
        if done == 0 {
            ask(bank, "look", from, to).await?;
        }
        let began = bank.time.now();
        let moved = ask(bank, "move", from, to).await?;
        bank.state().redated += moved["moved"].as_u64().unwrap_or(0);
        // A run that was not answered for days moved nothing, and its dates are over.
        let is_in_time = moved.is_null() || bank.time.now() < last + TimeDelta::days(i64::from(LEFT_OPEN));
        ensure!(is_in_time, "there is always more to move");
        done = if moved["waiting"] == 0 && moved["isComplete"] == true { done + 1 } else { 0 };
        if done == 2 {
            return none_left(bank, (from, to), began - lag::LONGEST);
        }
        pause(lag::LONGEST).await;
    }
    Ok(())
}

/// Invokes `redate` until it answers.
async fn ask(bank: &Arc<Bank>, action: &str, from: NaiveDate, to: NaiveDate) -> Result<Value> {
    let mut last = None;
    for _ in 0..TRIES {
        while bank.switches.is_restoring() {
            pause(TimeDelta::hours(1)).await;
        }
        let mut request = json!({ "action": action, "calendar": "GB", "from": from, "to": to });
        // Two persons agreed in the console.
        if action == "move" {
            let (closed, most) = (
                from.iter_days().take_while(|date| *date <= to).filter(|it| is_closed(*it)).count(),
                u64::from(u32::MAX),
            );
            let dates = (from.to_string().parse()?, to.to_string().parse()?);
            let fields = fields("GB", dates, (closed, most));
            request["approval"] = json!(approved(bank, BOTH, (ACTION, &fields)).await?);
            request["most"] = json!(most);
        }
        match bank.scheduled("redate", request, TimeDelta::zero()).await {
            Ok(outcome) => return Ok(outcome),
            // The run was tried for days.
            Err(error) if error.contains("days ago") => return Ok(Value::Null),
            Err(error) => last = Some(error),
        }
        pause(TimeDelta::minutes(5)).await;
    }
    Err(anyhow!("{}", last.unwrap_or_default()))
}

/// No payment is left that was due on a closed date before the last run, and that nobody changed since.
fn none_left(bank: &Bank, (from, to): (NaiveDate, NaiveDate), since: DateTime<Utc>) -> Result<()> {
    let touched: Vec<String> =
        bank.changes.since(since).into_iter().map(|change| id_of(&change.key.1).to_owned()).collect();
    for ((pk, sk), head) in scan(bank, "payments")? {
        let (date, at) = due_of(&head);
        let (Ok(date), Ok(due)) = (date.parse::<NaiveDate>(), at.parse::<DateTime<Utc>>()) else { continue };
        let is_left = is_of_head(&pk)
            && text(&head, "status") == "SCHEDULED"
            && text(&head, "currency") == "GBP"
            && (from..=to).contains(&date)
            && due > bank.time.now()
            && opens_after(due, bank.time.now(), &bank.tz).is_some()
            && !touched.iter().any(|id| id == id_of(&sk));
        if is_left {
            bank.complain(format!("{} is still due on the closed date {date} after a redate", id_of(&sk)));
        }
    }
    Ok(())
}
