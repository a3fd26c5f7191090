//! The unreliable triggers of the functions, beside clients: the stream, the queues and the schedules.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result};
use chrono::TimeDelta;
use fastrand::Rng;
use payments_bank::Functions;
use payments_delivery::{Delivery, DeliveryOutcome, QueueMapping, StreamMapping};
use payments_machine::Handlers as _;
use payments_machine::Template;
use payments_machine::layers::weaken::Weakness;
use payments_machine::schedule::{Schedule, ScheduleSpec};
use payments_machine::triggers::{queue_settings, stream_settings};
use payments_model::BusinessZone;
use serde_json::{Value, json};
use tokio::task::spawn_local;
use tokio::time::timeout;

use crate::checks::acknowledged::Asked;
use crate::checks::recounts;
use crate::plans::broken::Part;
use crate::plans::faults::FaultKind;
use crate::time::{pause, to_next};
use crate::world::bank::Bank;

/// The time for which a consumer of the stream looks after its last record: longer than its windows are open.
const LINGER: TimeDelta = TimeDelta::seconds(90);

/// The time between its looks.
const LOOK: TimeDelta = TimeDelta::seconds(5);

/// The days, before and after today, that a recount reads. The recount of the month's end reads all.
const RECOUNTED: [i64; 2] = [-1, 0];

/// The time between writes of the journal while faults happen. With one each minute, as in the
/// template, a month would take a fifth longer.
const JOURNALED_EVERY: TimeDelta = TimeDelta::minutes(15);

/// The time between writes in a healthy month: an alarm waits for a quarter of an hour.
const JOURNALED_IN_HEALTH_EVERY: TimeDelta = TimeDelta::minutes(5);

fn is_on(switch: &AtomicBool) -> bool {
    switch.load(Ordering::Relaxed)
}

/// Starts all triggers. They run as long as the runtime.
pub(crate) fn start(bank: &Arc<Bank>, zone: BusinessZone) -> Result<()> {
    let template = Template::ours()?;
    for (consumer, function) in ["dispatch", "stream-aggregator"].into_iter().enumerate() {
        spawn_local(deliver(Arc::clone(bank), consumer, function, mapping(bank, function)?));
    }
    for _ in 0..2 {
        let mapping = QueueMapping::new(queue_settings("settle")?, bank.queues.results.clone());
        spawn_local(settle(Arc::clone(bank), mapping));
    }
    spawn_local(serve(Arc::clone(bank)));
    spawn_local(roll(Arc::clone(bank)));
    spawn_local(hold(Arc::clone(bank)));
    spawn_local(fail_both(Arc::clone(bank)));
    let recount = template.function("recount")?.schedules.first().context("no recount")?;
    spawn_local(recount_by_hand(Arc::clone(bank), recount));
    let journaled_every = if bank.faults.are_enabled() { JOURNALED_EVERY } else { JOURNALED_IN_HEALTH_EVERY };
    let schedules = template.schedules().filter(|spec| bank.undos || spec.package != "undo").map(|spec| {
        let schedule = Schedule::new(spec, zone)?;
        Ok(if spec.package == "publish" { schedule.every(journaled_every) } else { schedule })
    });
    let schedules = schedules.collect::<Result<Vec<_>>>()?;
    spawn_local(schedule(Arc::clone(bank), schedules));
    Ok(())
}

/// The mapping of a function from the stream that the hot table has now.
fn mapping(bank: &Bank, function: &'static str) -> Result<StreamMapping> {
    if function == "dispatch" {
        let settings = stream_settings("dispatch", Some(&bank.queues.dispatch_failures))?;
        return Ok(StreamMapping::new(settings, bank.stream.shards())?);
    }
    let mut cuts = bank.seed.source("cuts");
    let faulty = bank.faults.clone();
    let cut = move |fits: usize| {
        let is_cut = faulty.has(FaultKind::RecordsRepeated) && cuts.u8(0..3) == 0;
        if is_cut { cuts.usize(1..=fits.max(1)) } else { fits }
    };
    let mut settings = stream_settings("stream-aggregator", None)?;
    if bank.weakness == Some(Weakness::DiscardedRecords) {
        settings.maximum_retry_attempts = Some(1);
    }
    Ok(StreamMapping::new(settings, bank.stream.shards())?.with_batch_cuts(cut))
}

/// Replaces the mapping of a table that is gone by that of the restored one. What Lambda still had of the old stream comes too late, from
/// the beginning on.
async fn replace(bank: &Bank, function: &'static str, mapping_before: &mut StreamMapping) -> Result<()> {
    let mut late = std::mem::replace(mapping_before, mapping(bank, function)?);
    late.restart_from_trim_horizon();
    late.step_together(bank.time.now(), |event| consume(bank, function, event)).await?;
    Ok(())
}

/// Delivers the stream to one of its consumers.
async fn deliver(bank: Arc<Bank>, consumer: usize, function: &'static str, mut mapping: StreamMapping) {
    let mut active_until = bank.time.now();
    let mut stream = bank.stream.number();
    loop {
        if !is_polled(&bank, function) {
            while !is_polled(&bank, function) {
                pause(LOOK).await;
            }
            mapping.resume_from_checkpoints();
            if stream != bank.stream.number() {
                stream = bank.stream.number();
                if let Err(error) = replace(&bank, function, &mut mapping).await {
                    bank.complain(format!("the mapping of {} cannot be replaced: {error:#}", function));
                }
            }
        }
        let now = bank.time.now();
        let invoke = |event| {
            bank.metrics.sent(function, &event, now);
            consume(&bank, function, event)
        };
        let steps = mapping.step_together(now, invoke).await;
        let Ok(steps) = steps else {
            pause(LOOK).await;
            continue;
        };
        count(&bank, function, &steps);
        if steps.iter().any(|step| matches!(step.outcome, DeliveryOutcome::Retrying { .. })) {
            pause(TimeDelta::seconds(2)).await;
        }
        if !steps.is_empty() {
            active_until = bank.time.now() + LINGER;
            if function == "stream-aggregator" && bank.faults.draw(FaultKind::PollerRestarted, 2) {
                mapping.restart_from_trim_horizon();
            }
            repeat(&bank, &mut mapping, function).await;
        } else if bank.time.now() < active_until {
            pause(LOOK).await;
        } else {
            bank.stream.news(consumer).await;
            active_until = bank.time.now() + LINGER;
        }
    }
}

/// Whether Lambda polls for a function of the stream or of the queue of results.
pub(crate) fn is_polled(bank: &Bank, package: &'static str) -> bool {
    let (paused, stalled) = (is_on(&bank.switches.paused), is_on(&bank.switches.stalled));
    let is_cut_off = package == "settle" && bank.switches.is_cut_off();
    let is_uncounted = package == "stream-aggregator" && is_on(&bank.switches.uncounted);
    let is_restoring = match package {
        "dispatch" => bank.switches.is_restoring(),
        _ => bank.switches.is_table_lost(),
    };
    let stands = is_restoring
        || (package == "dispatch" && paused)
        || (package != "settle" && stalled)
        || is_cut_off
        || is_uncounted;
    !stands && !bank.broken.is(Part::Mapping(package))
}

/// Counts what a mapping of the stream delivered.
fn count(bank: &Bank, function: &'static str, steps: &[Delivery]) {
    let name = function;
    for Delivery { records, outcome, .. } in steps {
        bank.metrics.polled(name, *records);
        if *outcome != DeliveryOutcome::Succeeded {
            bank.metrics.failed(name, *records);
        }
        // `dispatch` has a failure queue, which takes what is discarded.
        if matches!(outcome, DeliveryOutcome::Discarded { .. }) && function != "dispatch" {
            bank.metrics.dropped(name, *records);
        }
    }
}

/// Delivers some records of a shard again, as Lambda does in rare cases.
async fn repeat(bank: &Arc<Bank>, mapping: &mut StreamMapping, function: &'static str) {
    if !bank.faults.draw(FaultKind::RecordsRepeated, 8) {
        return;
    }
    let Some((shard, Some(to))) = mapping.checkpoints().into_iter().rfind(|(_, checkpoint)| checkpoint.is_some())
    else {
        return;
    };
    let _repeated = mapping.redeliver(&shard, &to, &to, |event| consume(bank, function, event)).await;
}

/// Invokes a function with records or messages. What it acknowledges, it has done.
async fn consume(bank: &Bank, function: &'static str, event: Value) -> Result<Value, String> {
    let asked = Asked::from_event(function, &event);
    let run = |functions: Arc<Functions>| async move { functions.deliver(function, event).await };
    let mut answer = bank.lambda.invoke(function, run).await??;
    if bank.weakness == Some(Weakness::UnsettledAcknowledged) && function == "settle" {
        answer["batchItemFailures"] = json!([]);
    }
    asked.check(bank, &answer);
    Ok(answer)
}

/// Delivers settlement results. A message whose invocation was killed, or whose deletion was lost, comes again.
async fn settle(bank: Arc<Bank>, mapping: QueueMapping) {
    loop {
        let invoke = |event: Value| {
            let bank = Arc::clone(&bank);
            async move {
                let done = consume(&bank, "settle", event).await?;
                if bank.faults.draw(FaultKind::MessageRepeated, 20) {
                    return Err("the messages are not deleted".to_owned());
                }
                Ok(done)
            }
        };
        if !is_polled(&bank, "settle") {
            pause(TimeDelta::seconds(10)).await;
            continue;
        }
        match mapping.step(bank.time.now(), invoke).await {
            Some(done) => {
                bank.metrics.polled("settle", done.messages);
                if done.deleted < done.messages {
                    bank.metrics.failed("settle", done.messages - done.deleted);
                }
            }
            None => pause(TimeDelta::seconds(10)).await,
        }
    }
}

/// Runs the transaction service, unless it is away.
async fn serve(bank: Arc<Bank>) {
    let mut random = bank.seed.source("service");
    let mut away_until = bank.time.now();
    let mut next_day = bank.time.now();
    loop {
        pause(TimeDelta::seconds(10)).await;
        let now = bank.time.now();
        if now >= next_day {
            next_day = now + TimeDelta::days(1);
            if bank.faults.draw(FaultKind::ServiceAway, 60) {
                away_until = now + TimeDelta::hours(random.i64(1..48));
            }
        }
        let is_away = now < away_until && bank.faults.has(FaultKind::ServiceAway);
        if is_away || bank.broken.is(Part::Service) {
            continue;
        }
        bank.serve(now, &mut random);
    }
}

/// Ends stream shards, each about every four hours.
async fn roll(bank: Arc<Bank>) {
    let mut random = bank.seed.source("rolls");
    loop {
        pause(TimeDelta::minutes(random.i64(60..100))).await;
        if bank.stream.roll(&mut random, bank.time.now()).is_ok() {
            bank.faults.count(FaultKind::ShardRolled);
        }
    }
}

/// Pauses sending and stalls the stream now and then, for hours.
async fn hold(bank: Arc<Bank>) {
    let mut random = bank.seed.source("holds");
    loop {
        pause(TimeDelta::hours(random.i64(12..36))).await;
        for (kind, switch, per_thousand) in
            [(FaultKind::Paused, &bank.switches.paused, 120), (FaultKind::Stalled, &bank.switches.stalled, 120)]
        {
            if bank.faults.draw(kind, per_thousand) {
                switch.store(true, Ordering::Relaxed);
                pause(TimeDelta::minutes(random.i64(30..600))).await;
                switch.store(false, Ordering::Relaxed);
            }
        }
    }
}

/// Fails DynamoDB and the report store at once, from the beginning of a report.
async fn fail_both(bank: Arc<Bank>) {
    let mut random = bank.seed.source("both fail");
    loop {
        pause(to_next(TimeDelta::hours(1), bank.time.now())).await;
        if bank.faults.draw(FaultKind::BothFail, 10) {
            bank.switches.failing.store(true, Ordering::Relaxed);
            pause(TimeDelta::seconds(random.i64(2..400))).await;
            bank.switches.failing.store(false, Ordering::Relaxed);
        }
    }
}

/// Runs the schedules: some twice, some late, some never.
async fn schedule(bank: Arc<Bank>, mut schedules: Vec<Schedule>) {
    let mut random = bank.seed.source("schedules");
    loop {
        let now = bank.time.now();
        for schedule in &mut schedules {
            if schedule.falls_due(now) {
                run(&bank, schedule.spec(), &mut random);
            }
        }
        pause(to_next(TimeDelta::minutes(1), now)).await;
    }
}

/// Recounts every few hours, while faults happen: the schedule does so once, when a date begins.
async fn recount_by_hand(bank: Arc<Bank>, spec: &'static ScheduleSpec) {
    let mut random = bank.seed.source("recounts");
    loop {
        pause(TimeDelta::minutes(random.i64(120..480))).await;
        if bank.faults.are_enabled() {
            invoke(&bank, spec).await;
        }
    }
}

fn run(bank: &Arc<Bank>, spec: &'static ScheduleSpec, random: &mut Rng) {
    let is_skipped = bank.weakness == Some(Weakness::NoRedrive) && spec.name == "redrive";
    if is_skipped || bank.broken.is(Part::Schedule(&spec.name)) {
        return;
    }
    if bank.faults.draw(FaultKind::ScheduleMissed, 10) || (spec.name == "sweep" && is_on(&bank.switches.paused)) {
        return;
    }
    let twice = bank.faults.draw(FaultKind::ScheduleTwice, 20);
    for time in 0..=u8::from(twice) {
        // The second one may come at once or minutes later.
        let late = if time == 1 && random.bool() {
            TimeDelta::seconds(random.i64(3..600))
        } else if bank.faults.draw(FaultKind::ScheduleLate, 20) {
            TimeDelta::seconds(random.i64(60..900))
        } else {
            TimeDelta::milliseconds(random.i64(0..3_000))
        };
        let bank = Arc::clone(bank);
        spawn_local(async move {
            pause(late).await;
            invoke(&bank, spec).await;
        });
    }
}

async fn invoke(bank: &Bank, spec: &'static ScheduleSpec) {
    // Only the journal and the webhooks go on during a restore.
    if bank.switches.is_restoring() && spec.package != "publish" {
        return;
    }
    let Ok(mut input) = serde_json::from_str::<Value>(&spec.input) else { return };
    if spec.package == "recount" {
        // Two years ahead, as a bank looks, would be four fifths of all calls.
        let [from, to] = RECOUNTED.map(|days| (bank.time.now() + TimeDelta::days(days)).date_naive().to_string());
        (input["from"], input["to"]) = (from.into(), to.into());
    }
    let ahead = bank.weakness.map_or(TimeDelta::zero(), |weakness| weakness.ahead(&spec.package));
    let began = bank.time.now();
    match bank.scheduled(&spec.package, input, ahead).await {
        Ok(outcome) if spec.package == "recount" => recounts::check(bank, began, &outcome),
        Ok(_) => {}
        Err(error) => bank.note(format!("{}: {error}", spec.name)),
    }
}

/// Waits until something is true, at most for `limit`. Returns whether it is.
pub(crate) async fn until(limit: TimeDelta, mut holds: impl AsyncFnMut() -> bool) -> bool {
    let waited = timeout(limit.to_std().unwrap_or_default(), async {
        while !holds().await {
            pause(TimeDelta::minutes(30)).await;
        }
    });
    waited.await.is_ok()
}
