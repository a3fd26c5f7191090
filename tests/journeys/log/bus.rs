//! The event bus gets every event of the log at least once, whatever it rejects, ends a run, or runs beside it.

use payments_machine::layers::client_over;
use payments_machine::{Fate, Layers};
use payments_restore::begin;
use payments_store::segment_of;
use payments_tests::{CrashPoints, Way};
use tokio::sync::Barrier;

use super::between::{at_call, failing};
use super::*;

impl Log {
    /// A world without a log, whose events go to a bus.
    async fn before_the_log() -> Result<Self> {
        Ok(Self { bus: Some(Arc::default()), ..Self::open().await? })
    }

    /// A world whose bus begins where the log ends, and lacks these segments.
    async fn with_bus(segments: &[usize]) -> Result<Self> {
        let log = Self::before_the_log().await?;
        // Before the first run there is nothing on the bus.
        log.segment(1).await?;
        log.publish().await?;
        log.segments(segments).await?;
        Ok(log)
    }

    fn bus(&self) -> Result<&Bus> {
        self.bus.as_deref().context("no bus")
    }

    /// The events that the bus accepted, without their envelopes.
    fn accepted(&self) -> Result<Vec<Value>> {
        Ok(self.bus()?.accepted().iter().map(|event| event["data"].clone()).collect())
    }

    /// The id of an event of the log.
    async fn id(&self, number: usize) -> Result<String> {
        Ok(text_of(&self.events().await?[number]["id"]).to_owned())
    }

    /// The bus must have every event since it was chosen, and no other; it may have one more than once. Returns how many it accepted.
    async fn judge_bus(&self) -> Result<usize> {
        let (mut accepted, mut log) = (self.accepted()?, self.events().await?.split_off(1));
        let count = accepted.len();
        for events in [&mut accepted, &mut log] {
            events.sort_by_key(|event| event["id"].to_string());
        }
        accepted.dedup();
        ensure!(accepted == log, "the bus has {} events, and the log {}", accepted.len(), log.len());
        Ok(count)
    }
}

/// The fields of the bus in an outcome: events, rejections, what is missed, and segments that are behind.
#[track_caller]
fn assert_bus(outcome: &Value, [events, rejections, missed, behind]: [u64; 4]) {
    let bus =
        json!({ "busEvents": events, "busRejections": rejections, "busMissed": missed, "busSegmentsBehind": behind });
    assert_has(outcome, &bus);
}

#[tokio::test]
async fn each_event_is_put_once_as_a_cloud_event() -> Result<()> {
    let log = Log::with_bus(&[]).await?;
    assert_eq!(log.accepted()?, Vec::<Value>::new());
    log.segment(25).await?;
    log.forget();
    assert_bus(&log.wake().await?, [25, 0, 0, 0]);
    // The bus's place moves over the first ten events, and over the others.
    let moves = BTreeMap::from([(("UpdateItem".to_owned(), "payments-log".to_owned()), 2)]);
    assert_eq!(log.take_write_units(), moves);
    assert_eq!((log.judge_bus().await?, log.bus()?.calls()), (25, 3));
    let first = log.bus()?.accepted()[0].clone();
    let data = first["data"].clone();
    let want = json!({
        "specversion": "1.0", "id": data["id"], "source": "scheduled-payments", "type": "payment.scheduled",
        "subject": data["paymentId"], "time": data["at"], "datacontenttype": "application/json", "data": data,
    });
    assert_eq!(first, want);
    // Nothing is new, so nothing is put or written.
    log.publish().await?;
    log.forget();
    log.publish().await?;
    assert!(log.take_write_units().is_empty());
    assert_eq!(log.accepted()?.len(), 25);
    Ok(())
}

#[tokio::test]
async fn an_event_that_the_bus_rejects_is_put_again_alone() -> Result<()> {
    let log = Log::with_bus(&[25]).await?;
    // One call for the first ten, one for those of them that were rejected, and two for the others.
    // About half of them, whatever their ids are: another engine's payments have other ones each time.
    log.bus()?.reject(|call, id| call == 1 && id.bytes().map(u32::from).sum::<u32>().is_multiple_of(2));
    let outcome = log.publish().await?;
    let rejected = outcome["busRejections"].as_u64().unwrap_or(0);
    assert!(rejected > 0 && rejected < 10, "{outcome}");
    assert_eq!((outcome["busEvents"].as_u64(), log.judge_bus().await?), (Some(25), 25));
    assert_eq!(log.bus()?.calls(), 4);
    Ok(())
}

#[tokio::test]
async fn a_bus_that_goes_on_rejecting_stops_its_own_events_and_nothing_else() -> Result<()> {
    for code in ["ThrottlingException", "NotAuthorizedForDetailTypeException"] {
        let log = Log::with_bus(&[200]).await?;
        let last = log.id(200).await?;
        log.bus()?.reject_as(code, move |_, event| event == last);
        for events in [199, 0] {
            // The place is before the event, so the others are not put again.
            assert_bus(&log.publish().await?, [events, 3, 0, 1]);
            assert_eq!(log.accepted()?.len(), 199);
        }
        assert_eq!(log.place("journal").await?, Some(log.end().await?));
        log.bus()?.reject(|_, _| false);
        log.publish().await?;
        assert_eq!(log.judge_bus().await?, 200);
    }
    Ok(())
}

#[tokio::test]
async fn an_event_that_stops_the_bus_repeats_nine_others_at_most() -> Result<()> {
    let log = Log::with_bus(&[200]).await?;
    let first = log.id(1).await?;
    log.bus()?.reject(move |_, event| event == first);
    for run in 1..=3 {
        log.publish().await?;
        assert_eq!(log.accepted()?.len(), 9 * run);
    }
    Ok(())
}

#[tokio::test]
async fn events_that_are_never_accepted_are_passed_over_loudly() -> Result<()> {
    for code in ["InvalidArgument", "MalformedDetail", "RedactionFailure"] {
        let log = Log::with_bus(&[200]).await?;
        let poison = log.id(100).await?;
        log.bus()?.reject_as(code, move |_, event| event == poison);
        assert_bus(&log.publish().await?, [199, 1, 1, 0]);
        assert_eq!((log.accepted()?.len(), log.place(Bus::CONSUMER).await?), (199, Some(log.end().await?)), "{code}");
    }
    Ok(())
}

/// Events that are not even put: they cannot be read, or a call would be too large with them.
#[tokio::test]
async fn events_that_are_damaged_or_too_large_are_passed_over_loudly() -> Result<()> {
    let log = Log::with_bus(&[3]).await?;
    let mut events: Vec<String> = log.entries(1_000).await?.into_iter().skip(1).map(|entry| entry.json).collect();
    let large =
        json!({ "id": "large", "type": "payment.scheduled", "at": "2026-11-20T09:00:00Z", "x": "x".repeat(26_000) });
    events[0] = large.to_string();
    events[1] = "[]".to_owned();
    let end = log.end().await?;
    let segment = segment_of(end.epoch, end.number - 1, &events, log.now());
    log.put_items(&log.environment.tables.log, [segment]).await?;
    assert_bus(&log.publish().await?, [1, 0, 2, 0]);
    Ok(())
}

/// EventBridge accepts events for a bus that does not exist.
#[tokio::test]
async fn a_bus_that_is_missing_gets_its_events_once_it_is_there() -> Result<()> {
    let log = Log::with_bus(&[]).await?;
    let before = log.place(Bus::CONSUMER).await?;
    log.segment(25).await?;
    log.bus()?.set_missing(true);
    for outcome in [log.publish().await?, log.wake().await?] {
        assert_bus(&outcome, [0, 0, 0, 1]);
    }
    assert_eq!((log.place(Bus::CONSUMER).await?, log.bus()?.calls()), (before, 0));
    log.bus()?.set_missing(false);
    log.publish().await?;
    assert_eq!(log.judge_bus().await?, 25);
    Ok(())
}

#[tokio::test]
async fn a_bus_that_was_chosen_before_the_log_began_gets_its_first_segment() -> Result<()> {
    let log = Log::before_the_log().await?;
    log.publish().await?;
    log.publish().await?;
    log.segment(3).await?;
    assert_bus(&log.wake().await?, [3, 0, 0, 0]);
    assert_eq!(log.accepted()?, log.events().await?);
    Ok(())
}

#[tokio::test]
async fn each_bus_has_a_place_of_its_own() -> Result<()> {
    let mut log = Log::with_bus(&[3]).await?;
    log.publish().await?;
    let first = log.bus.replace(Arc::new(Bus::named("other")));
    log.segment(2).await?;
    log.publish().await?;
    log.segment(1).await?;
    log.publish().await?;
    assert_eq!(log.accepted()?.len(), 1);
    // The first bus continues where it stopped.
    log.bus = first;
    assert_eq!(log.accepted()?.len(), 3);
    log.publish().await?;
    assert_eq!(log.judge_bus().await?, 6);
    Ok(())
}

/// Two runs put the same events until their first moves, which come at the same time.
#[tokio::test]
async fn of_two_runs_in_lockstep_one_ends_at_its_first_move() -> Result<()> {
    let log = Log::with_bus(&[200, 200, 200]).await?;
    let both_move = Arc::new(Barrier::new(2));
    let run = async || {
        let (both_move, moves) = (Arc::clone(&both_move), Arc::new(AtomicUsize::new(0)));
        let layers = Layers::over(log.recorder.clone()).with_fn(move |call, next| {
            let waits = call.operation == "UpdateItem" && moves.fetch_add(1, Ordering::Relaxed) == 0;
            let both_move = Arc::clone(&both_move);
            async move {
                if !waits {
                    return next.send(call).await;
                }
                both_move.wait().await;
                let moved = next.send(call).await;
                // Each run waits until both know the result of their moves.
                both_move.wait().await;
                moved
            }
        });
        let function = log.function(&client_over(&log.client().await, layers))?;
        invoke(&function, Request::Woken, NO_DEADLINE).await
    };
    let (one, other) = tokio::try_join!(run(), run())?;
    let mut put = [one, other].map(|outcome| outcome["busEvents"].as_u64());
    put.sort_unstable();
    assert_eq!(put, [Some(10), Some(600)]);
    log.judge_bus().await.map(drop)
}

#[tokio::test]
async fn a_run_that_is_killed_at_any_call_loses_no_event_of_the_bus() -> Result<()> {
    let fates = [Fate::KillBefore, Fate::KillAfter, Fate::LoseReply];
    let mut points = CrashPoints::new("bus-killed", fates.map(Way::once));
    while let Some(point) = points.next_case() {
        let log = Log::with_bus(&[170]).await?;
        let run = async |client| log.publish_over(client).await;
        failing(&log, &mut points, point, |_| true, run).await?;
        log.segment(1).await?;
        log.publish().await?;
        log.judge_bus().await.with_context(|| format!("{point:?}"))?;
    }
    assert!(points.cases() > 20, "{points:?}");
    Ok(())
}

#[tokio::test]
async fn a_run_that_another_one_overtakes_leaves_no_event_of_the_bus_out() -> Result<()> {
    for number in 0..10 {
        let log = Log::with_bus(&[2, 2]).await?;
        let run = async |client| log.publish_over(client).await;
        at_call(&log, "bus-overtaken", number, run, async { log.publish().await.map(drop) }).await?;
        log.segment(1).await?;
        log.publish().await?;
        let accepted = log.judge_bus().await.with_context(|| format!("overtaken at call {number}"))?;
        // Each of them at most twice: an overtaken run ends.
        assert!(accepted <= 9, "{accepted} events");
    }
    Ok(())
}

/// Each call takes longer than the run has.
#[tokio::test]
async fn when_the_deadline_comes_no_more_events_are_put_whether_the_bus_accepts_or_not() -> Result<()> {
    for (is_throttled, events) in [(false, 10), (true, 0)] {
        let log = Log::with_bus(&[25]).await?;
        let (before, pass) = (log.bus()?.calls(), log.passing());
        log.bus()?.reject(move |_, _| {
            pass(TimeDelta::minutes(1));
            is_throttled
        });
        let deadline = log.deadline(TimeDelta::seconds(59))?;
        invoke(&log.function(&log.client().await)?, Request::Tick, deadline).await?;
        assert_eq!((log.bus()?.calls() - before, log.accepted()?.len()), (1, events));
        log.bus()?.reject(|_, _| false);
        log.publish().await?;
        log.judge_bus().await?;
    }
    Ok(())
}

/// A restore ended the epoch before the places of journal and bus. They have what the log lost, so they missed nothing.
#[tokio::test]
async fn journal_and_bus_go_on_in_the_next_epoch_of_a_torn_log_and_miss_nothing() -> Result<()> {
    let log = Log::with_bus(&[1, 1]).await?;
    log.publish().await?;
    let before = log.journal().await?;
    log.tear(3).await?;
    log.set_clock("2026-11-20T12:00:00Z")?;
    begin(&log.store().await).await?;
    log.publish().await?;
    log.finish_log("2026-11-20T11:00:00Z").await?;
    log.segment(1).await?;
    let all = json!({ "journalMissed": 0, "journalSegmentsBehind": 0, "busMissed": 0, "busSegmentsBehind": 0 });
    assert_has(&log.publish().await?, &all);
    let (journal, events) = (log.journal().await?, log.events().await?);
    assert_eq!((&journal[..3], &journal[3..]), (&before[..], &events[2..]));
    assert_eq!(log.accepted()?[2..], events[2..]);
    Ok(())
}

/// The log was put back without a new epoch: its numbers are used again.
#[tokio::test]
async fn a_bus_that_is_beyond_the_log_stands_still() -> Result<()> {
    let log = Log::with_bus(&[2]).await?;
    log.publish().await?;
    let end = log.end().await?;
    let mut from = end;
    for to in [
        LogPosition { number: end.number + 3, ..end },
        // The last segment is shorter now.
        LogPosition { number: end.number - 1, offset: 9, ..end },
        LogPosition { epoch: end.epoch.next(log.now()), number: 1, offset: 0 },
    ] {
        ensure!(log.store().await.move_log_consumer(Bus::CONSUMER, Some(from), to).await?);
        log.forget();
        assert_fails(log.publish().await, "of the event bus payments; see docs/restore.md");
        assert_eq!((log.accepted()?.len(), log.place(Bus::CONSUMER).await?), (2, Some(to)));
        let metrics = log.outside.metrics.take().concat();
        assert!(metrics.contains("\"BusSegmentsBehind\":1"), "{metrics}");
        from = to;
    }
    Ok(())
}
