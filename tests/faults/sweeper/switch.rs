//! The switch: from five seconds after a stop until the resume nothing is claimed, redriven or sent, whatever fails.
//!
//! A month stops at random; here each call of a run is the one during which somebody stops.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta, Utc};
use daily_due_sweeper::Action;
use payments_lab::facts::intent::Intent;
use payments_machine::given::{resume, stop, turn_switch};
use payments_machine::{Call, Fate};
use payments_model::{Shard, Status, UtcSecond};
use payments_store::{DueRange, DueUntil, Store};
use serde_json::json;

use crate::kit::fixture::{Fixture, redriven};
use crate::kit::invariants::Stage;
use crate::sweeper::{many_due, swept};

/// The time after a stop within which the last claim, redrive or request leaves.
const WITHIN: TimeDelta = TimeDelta::seconds(5);

/// The observed course of a run.
#[derive(Default)]
struct Seen {
    stopped_at: Option<DateTime<Utc>>,
    /// The times of claims, redrives and requests after the stop.
    acts: Vec<DateTime<Utc>>,
}

type Shared = Arc<Mutex<Seen>>;

fn lock(seen: &Shared) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Claims and redrives change heads.
fn is_act(call: &Call) -> bool {
    let key = call.input()["Key"]["pk"]["S"].as_str().unwrap_or_default();
    call.operation == "SendMessageBatch" || (call.operation == "UpdateItem" && key.starts_with("ACCT#"))
}

/// Somebody stops all during this call, which has this fate.
fn stop_during(fixture: &Fixture, number: usize, fate: Fate) -> Result<Shared> {
    let engine = fixture.world.engine().context("the embedded engine")?.clone();
    let (time, table) = (fixture.time.clone(), fixture.tables().history.clone());
    let seen = Shared::default();
    let shared = Arc::clone(&seen);
    fixture.faults.inject(move |call: &Call| {
        let (mut seen, now) = (lock(&shared), time.now());
        if seen.stopped_at.is_some() {
            seen.acts.extend(is_act(call).then_some(now));
            return Fate::Pass;
        }
        if call.number != number {
            return Fate::Pass;
        }
        let text = |text: &str| json!({ "S": text });
        let switch = json!({
            "pk": text("CONTROL"), "sk": text("SWITCH"), "version": { "N": "1" }, "stopped": { "BOOL": true },
            "by": text("o:ada"), "at": text("2026-11-20T09:00:00Z"), "reason": text("why"), "heldDates": { "L": [] },
        });
        let put = engine.call("PutItem", &json!({ "TableName": table, "Item": switch }));
        seen.stopped_at = put.is_ok().then_some(now);
        fate
    });
    Ok(seen)
}

/// Fails if something was done later than five seconds after the stop. Returns whether there was a stop.
fn assert_stopped(seen: &Shared, case: &str) -> bool {
    let seen = lock(seen);
    let Some(stopped_at) = seen.stopped_at else { return false };
    for at in &seen.acts {
        assert!(*at - stopped_at <= WITHIN, "{case}: {} after the stop", *at - stopped_at);
    }
    true
}

/// Resumes, an hour and a minute after now.
async fn resumed(fixture: &Fixture) -> Result<()> {
    fixture.faults.clear();
    fixture.faults.calls_take(TimeDelta::zero());
    fixture.time.pass(TimeDelta::minutes(61));
    let store = Store::new(fixture.client.clone(), fixture.tables().clone());
    turn_switch(&store, UtcSecond::new(fixture.time.now())?, resume).await?;
    fixture.time.pass(TimeDelta::seconds(3));
    Ok(())
}

/// Asserts that each payment had one request, now or before the stop.
fn assert_sent_once(fixture: &Fixture, intents: &[Intent], case: &str) {
    let sent = fixture.faults.sent_for(&intents[0].account);
    let mut ids: Vec<&str> = sent.iter().filter_map(|sent| sent.request["paymentId"].as_str()).collect();
    assert_eq!(sent.len(), intents.len(), "{case}");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), intents.len(), "{case}");
}

#[tokio::test]
async fn no_request_leaves_later_than_five_seconds_after_a_stop_and_the_redrive_sends_the_rest_once() -> Result<()> {
    let mut stops = 0;
    for number in 0.. {
        let fate = if number % 2 == 0 { Fate::Pass } else { Fate::LoseReply };
        let (fixture, case) = (Fixture::start().await?, format!("call {number}, {fate:?}"));
        // Three sends: of 40, 40 and 10 requests, and each of at most four calls.
        let intents = fixture.pending(90).await?;
        fixture.faults.calls_take(TimeDelta::milliseconds(700));
        let seen = stop_during(&fixture, number, fate)?;
        fixture.dispatch_all().await?;
        if !assert_stopped(&seen, &case) {
            assert!(number > 10, "{number} calls");
            break;
        }
        stops += 1;
        fixture.serve(None)?;
        fixture.settle_all().await?;
        resumed(&fixture).await?;
        let outcome = redriven(fixture.tick(Action::Redrive).await?)?;
        assert_eq!(outcome.switch.stopped, 0, "{case}");
        fixture.dispatch_all().await?;
        fixture.serve(None)?;
        fixture.settle_all().await?;
        if fate == Fate::Pass {
            assert_sent_once(&fixture, &intents, &case);
        }
        fixture.assert_lawful(&intents, Stage::Finished).await?;
    }
    assert!(stops > 10, "{stops} stops");
    Ok(())
}

#[tokio::test]
async fn a_sweep_and_a_redrive_end_when_somebody_stops() -> Result<()> {
    for action in [Action::Sweep, Action::Redrive] {
        for number in [0, 1, 5, 60, 200] {
            let (fixture, case) = (Fixture::with_shards(2).await?, format!("{action:?}, call {number}"));
            many_due(&fixture, 400, 2).await?;
            if action == Action::Redrive {
                assert_eq!(swept(fixture.tick(Action::Sweep).await?)?.claimed, 400);
                fixture.time.pass(TimeDelta::minutes(61));
            }
            fixture.faults.calls_take(TimeDelta::milliseconds(50));
            let seen = stop_during(&fixture, number, Fate::Pass)?;
            let outcome = fixture.tick(action).await?;
            let ended = fixture.time.now();
            assert!(assert_stopped(&seen, &case), "{case}: no stop");
            let stopped_at = lock(&seen).stopped_at.context("no stop")?;
            let took = ended - stopped_at;
            let stopped = match &outcome {
                daily_due_sweeper::SweeperOutcome::Sweep(sweep) => {
                    // The last read is two seconds old at most. 32 claims are under way, and the outcome is stored.
                    assert!(took <= TimeDelta::milliseconds(2_000 + 40 * 50), "{case}: it went on for {took}");
                    // Nobody takes the end of the sweep for the end of the work.
                    assert!(sweep.remaining_is_lower_bound, "{case}: {sweep:?}");
                    sweep.switch.stopped
                }
                // A redrive counts to its end.
                daily_due_sweeper::SweeperOutcome::Redrive(redrive) => {
                    assert_eq!(redrive.waiting + redrive.redriven, 400, "{case}: {redrive:?}");
                    redrive.switch.stopped
                }
            };
            assert_eq!(stopped, 1, "{case}: {outcome:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_redrive_sends_a_last_request_that_a_stop_skipped() -> Result<()> {
    let fixture = Fixture::with_shards(1).await?;
    let intents = fixture.pending(2).await?;
    let store = Store::new(fixture.client.clone(), fixture.tables().clone());
    let now = || UtcSecond::new(fixture.time.now());
    let until = DueUntil::Instant("2026-11-20".parse()?, now()?);
    let range =
        DueRange { shard: Shard::from_stored(0).context("a shard")?, status: Status::Pending, until, after: None };
    for row in store.due_page(&range, 10).await?.rows {
        assert!(store.redrive(&row?.head, 1, 8, now()?).await?);
    }
    turn_switch(&store, now()?, stop).await?;
    fixture.dispatch_all().await?;
    resumed(&fixture).await?;
    // A redrive of the first seconds may be skipped, too.
    fixture.time.pass(TimeDelta::seconds(6));
    assert_eq!(redriven(fixture.tick(Action::Redrive).await?)?.redriven, 2);
    fixture.dispatch_all().await?;
    assert_sent_once(&fixture, &intents, "after the resume");
    // A request that was sent is not repeated beyond the last attempt.
    fixture.time.pass(TimeDelta::minutes(61));
    let outcome = redriven(fixture.tick(Action::Redrive).await?)?;
    assert_eq!((outcome.redriven, outcome.stuck), (0, 2), "{outcome:?}");
    Ok(())
}

#[tokio::test]
async fn a_switch_that_cannot_be_read_means_stopped() -> Result<()> {
    for (fate, is_retried) in [
        (Fate::Refuse(500, "InternalServerError"), true),
        (Fate::LoseReply, true),
        (Fate::Refuse(400, "AccessDeniedException"), true),
        // The item is damaged.
        (Fate::Pass, false),
    ] {
        let fixture = Fixture::start().await?;
        let (pending, due) = (fixture.pending(3).await?, fixture.due(3).await?);
        if fate == Fate::Pass {
            let damaged = fixture.client.put_item().table_name(&fixture.tables().history);
            let [pk, sk] = ["CONTROL", "SWITCH"].map(payments_tests::tables::text);
            damaged.item("pk", pk).item("sk", sk).send().await?;
        }
        fixture.faults.inject(move |call: &Call| if call.operation == "GetItem" { fate } else { Fate::Pass });
        drop(fixture.metrics.take());
        let outcome = swept(fixture.tick(Action::Sweep).await?)?;
        assert_eq!((outcome.claimed, outcome.switch.switch_unreadable), (0, 1), "{fate:?}");
        assert_eq!(fixture.measured(["SwitchUnreadable", "Claimed"]), [1, 0], "{fate:?}");
        fixture.dispatch_step().await?;
        assert_eq!(fixture.faults.sent(), 0, "{fate:?}");
        let counts = if is_retried { [0, 3] } else { [3, 0] };
        assert_eq!(fixture.measured(["SendsStopped", "SendFailed"]), counts, "{fate:?}");
        if is_retried {
            fixture.faults.clear();
            fixture.time.pass(TimeDelta::seconds(3));
            fixture.dispatch_all().await?;
            assert_eq!(fixture.faults.sent(), 3, "{fate:?}: Lambda retries what was not sent");
            assert_eq!(swept(fixture.tick(Action::Sweep).await?)?.claimed, 3);
        }
        fixture.assert_lawful(&pending, Stage::UnderWay).await?;
        fixture.assert_lawful(&due, Stage::UnderWay).await?;
    }
    Ok(())
}

#[tokio::test]
async fn batches_of_a_second_share_one_read_of_the_switch_of_one_unit() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.pending(250).await?;
    fixture.faults.clear();
    fixture.dispatch_all().await?;
    assert_eq!((fixture.faults.sent(), fixture.faults.tries_of("GetItem")), (250, 1));
    Ok(())
}

#[tokio::test]
async fn a_sweep_does_not_read_the_entries_of_held_dates() -> Result<()> {
    let fixture = Fixture::with_shards(1).await?;
    many_due(&fixture, 50, 1).await?;
    let store = Store::new(fixture.client.clone(), fixture.tables().clone());
    let (at, today) = (UtcSecond::new(fixture.time.now())?, "2026-11-20".parse()?);
    let hold = |from, change| payments_model::Hold { from, to: today, change };
    turn_switch(&store, at, |switch, change| switch.holds = vec![hold(today, change)]).await?;
    let ranges: Arc<Mutex<Vec<[String; 2]>>> = Arc::default();
    let noted = Arc::clone(&ranges);
    fixture.faults.inject(move |call: &Call| {
        let values = &call.input()["ExpressionAttributeValues"];
        if call.operation == "Query" {
            let bounds = [":from", ":to"].map(|name| values[name]["S"].as_str().unwrap_or_default().to_owned());
            noted.lock().unwrap_or_else(PoisonError::into_inner).push(bounds);
        }
        Fate::Pass
    });
    let outcome = swept(fixture.tick(Action::Sweep).await?)?;
    assert_eq!((outcome.claimed, outcome.remaining, outcome.oldest_overdue_seconds), (0, 0, Some(0)));
    let ranges = ranges.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let held = "SCHEDULED#2026-11-20#";
    let covers = |[from, to]: &&[String; 2]| from.as_str() <= held && held <= to.as_str();
    assert!(!ranges.is_empty() && ranges.iter().find(covers).is_none(), "{ranges:?}");
    Ok(())
}
