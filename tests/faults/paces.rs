//! The paces of claims, redrives and settlements, also while DynamoDB throttles.
//!
//! The tests take more payments at once than a month has.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta, Utc};
use daily_due_sweeper::{Action, RedriveOutcome};
use lambda_runtime::LambdaEvent;
use payments_bank::Functions;
use payments_machine::{Call, Environment, Fate};
use payments_tests::tables::context;

use crate::kit::fixture::{Fixture, redriven, settle, timeout_of};
use crate::sweeper::{many_due, swept};

const THROTTLED: Fate = Fate::Refuse(400, "ProvisionedThroughputExceededException");

const SWEEPER: &str = "daily-due-sweeper";

/// The time of each write.
type Times = Arc<Mutex<Vec<DateTime<Utc>>>>;

/// The functions with other paces.
fn functions(fixture: &Fixture, shards: u16, claims: u32, settlements: u32) -> Result<Functions> {
    let mut environment = Environment { shards, ..fixture.world.environment.clone() };
    (environment.claims_per_second, environment.settlements_per_second) = (claims, settlements);
    Functions::within(&environment, |_| Ok(fixture.dependencies.clone()))
}

/// Notes when each update comes, and throttles those for which `is_throttled` says so, by the seconds since the first.
fn note_updates(fixture: &Fixture, is_throttled: impl Fn(&Call, TimeDelta) -> bool + Send + Sync + 'static) -> Times {
    let (times, time) = (Times::default(), fixture.time.clone());
    let seen = Arc::clone(&times);
    fixture.faults.inject(move |call: &Call| {
        if call.operation != "UpdateItem" {
            return Fate::Pass;
        }
        let (now, mut seen) = (time.now(), seen.lock().unwrap_or_else(PoisonError::into_inner));
        let first = *seen.first().unwrap_or(&now);
        seen.push(now);
        if is_throttled(call, now - first) { THROTTLED } else { Fate::Pass }
    });
    times
}

/// Fails if more than this many writes come within a second.
fn assert_pace(times: &Times, at_most: usize) {
    let times = times.lock().unwrap_or_else(PoisonError::into_inner);
    for (write, later) in times.iter().zip(times.iter().skip(at_most)) {
        assert!(*later - *write >= TimeDelta::seconds(1), "{} writes within a second of {write}", at_most + 1);
    }
}

/// Claims this many payments, and passes the time until they are redriven.
async fn redrivable(fixture: &Fixture, count: u32, shards: u32) -> Result<()> {
    many_due(fixture, count, shards).await?;
    assert_eq!(swept(fixture.tick(Action::Sweep).await?)?.claimed, u64::from(count));
    fixture.time.pass(TimeDelta::minutes(61));
    Ok(())
}

async fn redrive(fixture: &Fixture, functions: &Functions) -> Result<RedriveOutcome> {
    redriven(fixture.tick_within(functions, Action::Redrive, timeout_of(SWEEPER)?).await?)
}

#[tokio::test]
async fn the_claims_of_a_second_do_not_come_at_once() -> Result<()> {
    let fixture = Fixture::with_shards(1).await?;
    many_due(&fixture, 100, 1).await?;
    let (slow, times) = (functions(&fixture, 1, 20, 0)?, note_updates(&fixture, |_, _| false));
    assert_eq!(swept(fixture.tick_within(&slow, Action::Sweep, timeout_of(SWEEPER)?).await?)?.claimed, 100);
    // 20, and a step of a quarter of a second.
    assert_pace(&times, 25);
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn a_redrive_keeps_the_pace_of_the_sweep() -> Result<()> {
    let fixture = Fixture::with_shards(1).await?;
    redrivable(&fixture, 250, 1).await?;
    let (slow, times) = (functions(&fixture, 1, 20, 0)?, note_updates(&fixture, |_, _| false));
    let started = fixture.time.now();
    let report = redrive(&fixture, &slow).await?;
    assert_eq!((report.redriven, report.shards_unfinished), (250, 0));
    assert_pace(&times, 25);
    let took = fixture.time.now() - started;
    assert!(took >= TimeDelta::milliseconds(12_500) && took < TimeDelta::seconds(15), "{took}");
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn a_run_passes_over_waiting_payments_at_a_pace() -> Result<()> {
    let fixture = Fixture::with_shards(1).await?;
    redrivable(&fixture, 400, 1).await?;
    assert_eq!(redrive(&fixture, &fixture.functions).await?.redriven, 400);
    let started = fixture.time.now();
    assert_eq!(redrive(&fixture, &fixture.functions).await?.waiting, 400);
    // 200 heads a second.
    let took = fixture.time.now() - started;
    assert!(took >= TimeDelta::seconds(2) && took < TimeDelta::seconds(3), "{took}");
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn a_redrive_that_is_throttled_for_a_second_continues() -> Result<()> {
    let fixture = Fixture::with_shards(2).await?;
    redrivable(&fixture, 60, 2).await?;
    note_updates(&fixture, |_, since| since < TimeDelta::seconds(1));
    let report = redrive(&fixture, &fixture.functions).await?;
    assert_eq!((report.redriven, report.shards_unfinished), (60, 0), "{report:?}");
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn a_lastingly_throttled_shard_stops_no_other_redrive() -> Result<()> {
    let fixture = Fixture::with_shards(10).await?;
    redrivable(&fixture, 200, 10).await?;
    // Copies of one payment have the number in their sort key: shard 7 has those that end in it, in decimal.
    let is_hot = |call: &Call, _| {
        let key = call.input()["Key"]["sk"]["S"].as_str().unwrap_or_default();
        let number = key.rsplit('-').next().and_then(|number| u64::from_str_radix(number, 16).ok());
        number.is_some_and(|number| number % 10 == 7)
    };
    note_updates(&fixture, is_hot);
    let started = fixture.time.now();
    let report = redrive(&fixture, &fixture.functions).await?;
    assert_eq!((report.redriven, report.shards_unfinished), (180, 1), "{report:?}");
    let took = fixture.time.now() - started;
    assert!(took >= TimeDelta::seconds(3) && took < TimeDelta::seconds(10), "{took}");
    fixture.faults.clear();
    assert_eq!(redrive(&fixture, &fixture.functions).await?.redriven, 20);
    fixture.assert_counters_exact().await
}

/// The shards whose index a run of a function reads, in the order of their first reads.
async fn shards_read(fixture: &Fixture, functions: &Functions, run: &str) -> Result<Vec<u16>> {
    let seen = Arc::<Mutex<Vec<u16>>>::default();
    let noted = Arc::clone(&seen);
    fixture.faults.inject(move |call: &Call| {
        let shard =
            call.input()["ExpressionAttributeValues"][":shard"]["N"].as_str().and_then(|it| it.parse::<u16>().ok());
        noted.lock().unwrap_or_else(PoisonError::into_inner).extend(shard.filter(|_| call.operation == "Query"));
        Fate::Pass
    });
    match run {
        "archive" => {
            let deadline = u64::try_from((fixture.time.now() + TimeDelta::minutes(14)).timestamp_millis())?;
            let event = LambdaEvent::new(archive::Request { action: archive::Action::Archive }, context(deadline));
            functions.archive.handle(event).await.map_err(anyhow::Error::from_boxed)?;
        }
        run => {
            let action = if run == "sweep" { Action::Sweep } else { Action::Redrive };
            fixture.tick_within(functions, action, timeout_of(SWEEPER)?).await?;
        }
    }
    fixture.faults.clear();
    let (mut read, seen) = (Vec::new(), seen.lock().unwrap_or_else(PoisonError::into_inner).clone());
    for shard in seen {
        if !read.contains(&shard) {
            read.push(shard);
        }
    }
    Ok(read)
}

/// More shards than a run works on at once: what waits on the first ones must not keep the others waiting for ever.
#[tokio::test]
async fn each_run_begins_with_the_shards_that_the_one_before_came_to_last() -> Result<()> {
    for (run, every) in [
        ("sweep", daily_due_sweeper::SWEEP_EVERY),
        ("redrive", daily_due_sweeper::REDRIVE_EVERY),
        ("archive", archive::ARCHIVE_EVERY),
    ] {
        let fixture = Fixture::with_shards(1).await?;
        let functions = functions(&fixture, 40, 20, 0)?;
        let first = shards_read(&fixture, &functions, run).await?;
        fixture.time.pass(every);
        let second = shards_read(&fixture, &functions, run).await?;
        let (mut last, mut next) = (first.get(32..40).context(run)?.to_vec(), second.get(..8).context(run)?.to_vec());
        last.sort_unstable();
        next.sort_unstable();
        assert_eq!(last, next, "{run}: {first:?}, {second:?}");
    }
    Ok(())
}

/// Payments that were pending for a day while no redrive ran have missed several attempts. A run that cannot reach all
/// sends those of its beginning once; the next run sends others.
#[tokio::test]
async fn after_a_pause_the_first_payments_leave_the_pace_to_the_others() -> Result<()> {
    let fixture = Fixture::with_shards(1).await?;
    redrivable(&fixture, 100, 1).await?;
    fixture.time.pass(TimeDelta::hours(24));
    let slow = functions(&fixture, 1, 4, 0)?;
    let mut runs = Vec::new();
    for _ in 0..3 {
        // 11 seconds of work at 4 a second.
        let report = redriven(fixture.tick_within(&slow, Action::Redrive, TimeDelta::seconds(22)).await?)?;
        runs.push((report.redriven, report.shards_unfinished));
        fixture.time.pass(TimeDelta::minutes(60));
    }
    let all: u64 = runs.iter().map(|(redriven, _)| redriven).sum();
    assert_eq!((all, runs[0].1, runs[2].1), (100, 1, 0), "each once: {runs:?}");
    assert_eq!(fixture.measured(["RedriveShardsUnfinished"]), [2]);
    fixture.assert_counters_exact().await
}

/// Sends ten results, and returns the functions with a pace of 40 a second.
async fn ten_results(fixture: &Fixture) -> Result<Functions> {
    fixture.pending(10).await?;
    fixture.dispatch_all().await?;
    fixture.serve(None)?;
    functions(fixture, 3, 200, 40)
}

/// Delivers one batch. Returns how long it took, and how many of its results return to the queue.
async fn deliver(fixture: &Fixture, functions: &Functions) -> (TimeDelta, usize) {
    let started = fixture.time.now();
    let delivered = fixture.settling.step(started, |event| settle(functions, event)).await;
    assert!(delivered.is_some());
    (fixture.time.now() - started, fixture.results.counts(started).in_flight)
}

#[tokio::test]
async fn a_batch_of_results_takes_its_time() -> Result<()> {
    let fixture = Fixture::start().await?;
    let functions = ten_results(&fixture).await?;
    assert_eq!(deliver(&fixture, &functions).await, (TimeDelta::milliseconds(250), 0));
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn results_that_are_throttled_for_seconds_burn_no_receive() -> Result<()> {
    let fixture = Fixture::start().await?;
    let functions = ten_results(&fixture).await?;
    note_updates(&fixture, |_, since| since < TimeDelta::seconds(6));
    let (took, returned) = deliver(&fixture, &functions).await;
    assert_eq!(returned, 0, "all are settled");
    assert!(took >= TimeDelta::seconds(6) && took < TimeDelta::seconds(9), "{took}");
    let [processed, failed, outages] = fixture.measured(["Processed", "Failed", "SettleOutages"]);
    assert_eq!((processed + failed, outages), (10, 0));
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn results_that_stay_throttled_are_returned_before_the_deadline_and_settled_later() -> Result<()> {
    let fixture = Fixture::start().await?;
    let functions = ten_results(&fixture).await?;
    note_updates(&fixture, |_, _| true);
    let (took, returned) = deliver(&fixture, &functions).await;
    assert_eq!(returned, 10);
    assert!(took >= TimeDelta::seconds(10) && took < TimeDelta::seconds(28), "{took}");
    fixture.faults.clear();
    fixture.pass_visibility();
    assert_eq!(deliver(&fixture, &functions).await.1, 0);
    fixture.assert_counters_exact().await
}
