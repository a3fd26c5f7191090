//! The operator: comes a while after an alarm went off, and takes the actions of its entry in docs/alarms.md.

use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use chrono::{DateTime, TimeDelta, Utc};
use payments_model::recount;
use payments_queue::Queue;
use serde_json::{Value, json};
use tokio::task::spawn_local;

use crate::checks::reversed;
use crate::plans::broken::Part;
use crate::time::pause;
use crate::workloads::approvals::{BOTH, approved};
use crate::workloads::by_hand;
use crate::workloads::runbook::Action;
use crate::world::bank::Bank;

/// The time after which the operator repeats the actions of an alarm that is still on.
const AGAIN_AFTER: TimeDelta = TimeDelta::hours(6);

/// The time for which the counters must have kept up before a repair, which comes as long after the recount.
const BEFORE_A_REPAIR: TimeDelta = TimeDelta::minutes(25 * 60 + 5);

/// The most tries of a repair: payments of a date may change between its recount and its repair.
const REPAIRS: usize = 20;

/// Starts the operator's work on an alarm, until it is off.
pub(crate) fn call(bank: &Arc<Bank>, alarm: String, actions: Vec<Action>, comes_after: TimeDelta) {
    bank.state().busy += 1;
    let bank = Arc::clone(bank);
    spawn_local(async move {
        pause(comes_after).await;
        // Also for an alarm that is off by now: most show what happened, and not that it lasts.
        loop {
            for action in &actions {
                if let Err(error) = take(&bank, &alarm, action).await {
                    bank.complain(format!("{alarm}: {action}: {error:#}"));
                }
            }
            let until = bank.time.now() + AGAIN_AFTER;
            while bank.alarms.is_on(&alarm) && bank.time.now() < until {
                pause(TimeDelta::minutes(10)).await;
            }
            if !bank.alarms.is_on(&alarm) {
                break;
            }
        }
        bank.state().busy -= 1;
    });
}

/// Takes an action of an alarm's entry.
async fn take(bank: &Bank, alarm: &str, action: &Action) -> Result<()> {
    let broken = &bank.broken;
    match action {
        Action::RunSweep => run(bank, "daily-due-sweeper", json!({ "action": "sweep" })).await.map(drop),
        Action::RunRedrive => run(bank, "daily-due-sweeper", json!({ "action": "redrive" })).await.map(drop),
        Action::RunReport => run(bank, "report", json!({ "action": "report" })).await.map(drop),
        Action::RunArchive => run(bank, "archive", json!({ "action": "archive" })).await.map(drop),
        Action::RunRecount => run(bank, "recount", json!({ "action": "recount" })).await.map(drop),
        Action::Repair => repair(bank).await,
        Action::EnableMapping(mapping) => {
            let package = package_of(mapping)?;
            broken.mend(|part, _| part == Part::Mapping(package));
            Ok(())
        }
        Action::ResumeSchedule(schedule) => {
            let name = schedule_of(schedule)?;
            broken.mend(|part, _| part == Part::Schedule(name));
            Ok(())
        }
        Action::MoveBack(from) => {
            let (from, to) = queues_of(bank, from)?;
            each(from, bank.time.now(), |body| {
                to.send(body, bank.time.now())?;
                Ok(())
            })
        }
        Action::DeleteStrangers(from) => delete_strangers(bank, queues_of(bank, from)?.0),
        Action::Purge(queue) if queue == "DispatchFailures" => {
            each(&bank.queues.dispatch_failures, bank.time.now(), |_| Ok(()))
        }
        Action::Purge(other) => bail!("nobody purges {other}"),
        Action::CorrectItem => by_hand::correct(bank, alarm).await,
        Action::EndCause => {
            broken.mend(|part, outage| matches!(part, Part::Reports | Part::Function(_)) && outage.is_named_by(alarm));
            Ok(())
        }
        Action::CorrectTemplate => {
            broken.mend(|part, outage| matches!(part, Part::Function(_)) && outage.is_named_by(alarm));
            Ok(())
        }
        Action::Raise(parameter) if parameter == "IndexWarmWriteUnits" => {
            broken.mend(|part, _| part == Part::Writes);
            Ok(())
        }
        Action::AskTheService if alarm == "ResultsOfOtherTransfers" => reversed::reverse(bank),
        // Their answers change nothing here. Outages need no other parameters or calendars, and lose no file.
        Action::AskTheService
        | Action::AskTheClient
        | Action::Raise(_)
        | Action::RestoreFile
        | Action::TellReaders
        | Action::RenewCalendars
        | Action::Redate => Ok(()),
    }
}

/// Invokes a function as an operator does.
async fn run(bank: &Bank, function: &'static str, input: Value) -> Result<Value> {
    let done = bank.scheduled(function, input, TimeDelta::zero()).await;
    done.map_err(|error| anyhow!("{function}: {error}"))
}

/// Recounts, and repairs what differs 25 hours later, until nothing differs.
async fn repair(bank: &Bank) -> Result<()> {
    if std::mem::replace(&mut bank.state().repairing, true) {
        return Ok(());
    }
    let repaired = repaired(bank).await;
    bank.state().repairing = false;
    repaired
}

async fn repaired(bank: &Bank) -> Result<()> {
    for _ in 0..REPAIRS {
        let keeps_up = || {
            let has_been_off = |alarm| bank.alarms.has_been_off(alarm, BEFORE_A_REPAIR, bank.time.now());
            has_been_off("CountsBehind") && has_been_off("CountingStopped")
        };
        while !keeps_up() {
            pause(TimeDelta::minutes(30)).await;
        }
        let found = run(bank, "recount", json!({ "action": "recount" })).await?;
        let dates: Vec<&str> =
            found["drifts"].as_array().into_iter().flatten().filter_map(|drift| drift["date"].as_str()).collect();
        let (Some(from), Some(to)) = (dates.iter().min(), dates.iter().max()) else { return Ok(()) };
        pause(BEFORE_A_REPAIR).await;
        let drift = drift(&found)?;
        let fields = recount::fields((from.parse()?, to.parse()?), &drift);
        let approval = approved(bank, BOTH, (recount::REPAIR, &fields)).await?;
        let repair = json!({ "action": "repair", "from": from, "to": to, "approval": approval, "drift": drift });
        run(bank, "recount", repair).await?;
    }
    bail!("the counters still differ after {REPAIRS} repairs")
}

/// The drift that a recount found, as two persons agree on it.
fn drift(found: &Value) -> Result<String> {
    let parts = found["drifts"].as_array().into_iter().flatten().map(|drift| {
        let of = |name| drift[name].as_str().with_context(|| format!("a drift has no {name}"));
        anyhow::Ok(recount::drift_of(of("date")?.parse()?, "it differs", of("foundAt")?.parse()?, "0"))
    });
    Ok(recount::drift(&parts.collect::<Result<Vec<_>>>()?))
}

/// Handles and deletes every message that a queue shows.
fn each(queue: &Queue, now: DateTime<Utc>, mut handle: impl FnMut(String) -> Result<()>) -> Result<()> {
    loop {
        let received = queue.receive(10, now);
        if received.is_empty() {
            return Ok(());
        }
        for message in received {
            handle(message.body)?;
            queue.delete(&message.receipt_handle);
        }
    }
}

/// Deletes the dead letters that name no payment of this stack.
fn delete_strangers(bank: &Bank, dead_letters: &Queue) -> Result<()> {
    let mut ours = Vec::new();
    each(dead_letters, bank.time.now(), |body| {
        let message: Value = serde_json::from_str(&body).unwrap_or_default();
        let id = message["paymentId"].as_str().unwrap_or_default();
        let key = json!({ "pk": { "S": format!("PAY#{id}") }, "sk": { "S": "DETAILS" } });
        let read = bank.engine.call("GetItem", &json!({ "TableName": "payment-history", "Key": key }));
        if read.map_err(|error| anyhow!("{error}"))?.get("Item").is_some() {
            ours.push(body);
        }
        Ok(())
    })?;
    for body in ours {
        dead_letters.send(body, bank.time.now())?;
    }
    Ok(())
}

/// The queue of dead letters, and the one that they came from.
fn queues_of<'b>(bank: &'b Bank, dead_letters: &str) -> Result<(&'b Queue, &'b Queue)> {
    match dead_letters {
        "RequestDeadLetters" => Ok((&bank.queues.request_dead_letters, &bank.queues.requests)),
        "ResultDeadLetters" => Ok((&bank.queues.result_dead_letters, &bank.queues.results)),
        other => bail!("no queue of dead letters is {other}"),
    }
}

fn package_of(mapping: &str) -> Result<&'static str> {
    let known = [
        ("DispatchFunctionBecamePending", "dispatch"),
        ("SettleFunctionReport", "settle"),
        ("StreamAggregatorFunctionHeadChanged", "stream-aggregator"),
    ];
    known.into_iter().find(|(id, _)| *id == mapping).map(|(_, package)| package).with_context(|| mapping.to_owned())
}

fn schedule_of(id: &str) -> Result<&'static str> {
    let known = [
        ("DailyDueSweeperFunctionSweep", "sweep"),
        ("DailyDueSweeperFunctionRedrive", "redrive"),
        ("ReportFunctionReport", "report"),
        ("ArchiveFunctionArchiveBegins", "archive-begins"),
        ("ArchiveFunctionArchive", "archive"),
        ("SealFunctionSeal", "seal"),
        ("RecountFunctionRecount", "recount"),
        ("RedateFunctionLookForRedates", "look-for-redates"),
        ("PublishFunctionPublish", "publish"),
    ];
    known.into_iter().find(|(known, _)| *known == id).map(|(_, name)| name).with_context(|| id.to_owned())
}
