//! The event bus gets every event of the log at least once, whatever it rejects, ends a run, or runs beside it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_sdk_dynamodb::Client;
use payments_machine::layers::{Fate, Layers, client_over};
use payments_restore::{Restored, begin, finish};
use payments_store::{Store, segment_of};
use payments_tests::tables::{NO_DEADLINE, context};
use payments_tests::{Bus, Counting, CrashPoints, Way, with_role};
use publish::{EventBus, Publish};
use tokio::sync::Barrier;

use super::between::{at_call, failing};
use super::*;

/// A world with a bus, which begins where the log ends.
struct Bussed {
    world: World,
    counting: Counting,
    bus: Arc<Bus>,
}

impl Bussed {
    /// A world without a log.
    async fn before_the_log() -> Result<Self> {
        let world = World::open().await?;
        let counting = Counting::of(&world).await?;
        Ok(Self { world, counting, bus: Arc::default() })
    }

    async fn open() -> Result<Self> {
        let mut bussed = Self::before_the_log().await?;
        // Before the first run there is nothing on the bus.
        bussed.segment(1, 900).await?;
        bussed.publish().await?;
        Ok(bussed)
    }

    /// Creates payments, and counts them: one segment.
    async fn segment(&mut self, payments: usize, from: usize) -> Result<()> {
        create(&self.world, payments, from).await?;
        self.counting.count(self.world.functions()).await.map(drop)
    }

    async fn publish(&self) -> Result<Value> {
        self.publish_over(self.world.client().await, json!({ "action": "publish" })).await
    }

    async fn publish_over(&self, client: Client, event: Value) -> Result<Value> {
        self.publish_until(NO_DEADLINE, client, event).await
    }

    /// Runs the function with its role.
    async fn publish_until(&self, deadline: u64, client: Client, event: Value) -> Result<Value> {
        let tables = &self.world.environment.tables;
        let store = Store::new(with_role(&client, "publish", tables)?, tables.clone());
        let dependencies = self.world.dependencies_over(&self.world.recorder).await;
        let function =
            Publish::new(store, dependencies.reports, dependencies.webhooks, dependencies.clock, dependencies.metrics);
        let bus: Arc<dyn EventBus> = Arc::clone(&self.bus) as _;
        let event = lambda_runtime::LambdaEvent::new(serde_json::from_value(event)?, context(deadline));
        let outcome = function.with_bus(Some(bus)).handle(event).await;
        Ok(serde_json::to_value(outcome.map_err(anyhow::Error::from_boxed)?)?)
    }

    /// Where the bus is.
    async fn place(&self) -> Result<Option<LogPosition>> {
        Ok(self.world.store().await.log_consumer(Bus::CONSUMER).await?)
    }

    /// The id of an event of the log.
    async fn id(&self, number: usize) -> Result<String> {
        let all = events(&all(&self.world, 1_000).await?)?;
        Ok(all.get(number).and_then(|event| event["id"].as_str()).context("no event")?.to_owned())
    }

    /// What the bus accepted: the events themselves.
    fn accepted(&self) -> Vec<Value> {
        self.bus.accepted().iter().map(|event| event["data"].clone()).collect()
    }

    /// The bus must have every event since it was chosen, and no other; it may have one more than once.
    async fn judge(&self) -> Result<()> {
        let mut accepted = self.accepted();
        accepted.sort_by_key(|event| event["id"].as_str().map(str::to_owned));
        accepted.dedup();
        let mut log = events(&all(&self.world, 1_000).await?)?.split_off(1);
        log.sort_by_key(|event| event["id"].as_str().map(str::to_owned));
        ensure!(accepted == log, "the bus has {} events, and the log {}", accepted.len(), log.len());
        Ok(())
    }
}

#[tokio::test]
async fn each_event_is_put_once_as_a_cloud_event() -> Result<()> {
    let mut bussed = Bussed::open().await?;
    assert_eq!(bussed.accepted(), Vec::<Value>::new());
    bussed.segment(25, 0).await?;
    drop(bussed.world.take_units());
    let outcome = bussed.publish_over(bussed.world.client().await, json!({ "Records": [] })).await?;
    // Its place moves over the first ten events, and over the others.
    let moves = BTreeMap::from([(("UpdateItem".to_owned(), "payments-log".to_owned()), 2)]);
    assert_eq!(bussed.world.take_write_units(), moves);
    let of_bus = json!({ "busEvents": 25, "busRejections": 0, "busMissed": 0, "busSegmentsBehind": 0 });
    for (name, value) in of_bus.as_object().context("no object")? {
        assert_eq!(&outcome[name], value, "{name}");
    }
    bussed.judge().await?;
    assert_eq!((bussed.accepted().len(), bussed.bus.calls()), (25, 3));
    let first = bussed.bus.accepted()[0].clone();
    let data = first["data"].clone();
    let want = json!({
        "specversion": "1.0", "id": data["id"], "source": "scheduled-payments", "type": "payment.scheduled",
        "subject": data["paymentId"], "time": data["at"], "datacontenttype": "application/json", "data": data,
    });
    assert_eq!(first, want);
    // Nothing is new, so nothing is put or written.
    bussed.publish().await?;
    drop(bussed.world.take_units());
    bussed.publish().await?;
    assert!(bussed.world.take_write_units().is_empty());
    assert_eq!(bussed.accepted().len(), 25);
    Ok(())
}

#[tokio::test]
async fn an_event_that_the_bus_rejects_is_put_again_alone() -> Result<()> {
    let mut bussed = Bussed::open().await?;
    bussed.segment(25, 0).await?;
    // One call for the first ten, one for those of them that were rejected, and two for the others.
    // About half of them, whatever their ids are: another engine's payments have other ones each time.
    bussed.bus.reject(|call, id| call == 1 && id.bytes().map(u32::from).sum::<u32>().is_multiple_of(2));
    let outcome = bussed.publish().await?;
    let rejected = outcome["busRejections"].as_u64().unwrap_or(0);
    assert!(rejected > 0 && rejected < 10, "{outcome}");
    bussed.judge().await?;
    assert_eq!((outcome["busEvents"].as_u64(), bussed.accepted().len()), (Some(25), 25));
    assert_eq!(bussed.bus.calls(), 4);
    Ok(())
}

#[tokio::test]
async fn a_bus_that_goes_on_rejecting_stops_its_own_events_and_nothing_else() -> Result<()> {
    for code in ["ThrottlingException", "NotAuthorizedForDetailTypeException"] {
        let mut bussed = Bussed::open().await?;
        bussed.segment(200, 0).await?;
        let last = bussed.id(200).await?;
        bussed.bus.reject_as(code, move |_, event| event == last);
        for _ in 0..2 {
            let outcome = bussed.publish().await?;
            assert_eq!((&outcome["busRejections"], &outcome["busSegmentsBehind"]), (&json!(3), &json!(1)), "{outcome}");
            assert_eq!(outcome["busMissed"], 0);
            // The place is before the event, so the others are not put again.
            assert_eq!(bussed.accepted().len(), 199);
        }
        let journal = bussed.world.store().await.log_consumer("journal").await?;
        assert_eq!(journal, Some(head(&bussed.world).await?.end()));
        bussed.bus.reject(|_, _| false);
        bussed.publish().await?;
        bussed.judge().await?;
        assert_eq!(bussed.accepted().len(), 200);
    }
    Ok(())
}

#[tokio::test]
async fn an_event_that_stops_the_bus_repeats_nine_others_at_most() -> Result<()> {
    let mut bussed = Bussed::open().await?;
    bussed.segment(200, 0).await?;
    let first = bussed.id(1).await?;
    bussed.bus.reject(move |_, event| event == first);
    for run in 1..=3 {
        bussed.publish().await?;
        assert_eq!(bussed.accepted().len(), 9 * run);
    }
    Ok(())
}

#[tokio::test]
async fn events_that_are_never_accepted_are_passed_over_loudly() -> Result<()> {
    for code in ["InvalidArgument", "MalformedDetail", "RedactionFailure"] {
        let mut bussed = Bussed::open().await?;
        bussed.segment(200, 0).await?;
        let poison = bussed.id(100).await?;
        bussed.bus.reject_as(code, move |_, event| event == poison);
        let outcome = bussed.publish().await?;
        let of_bus =
            ["busEvents", "busRejections", "busMissed", "busSegmentsBehind"].map(|name| outcome[name].as_u64());
        assert_eq!(of_bus, [Some(199), Some(1), Some(1), Some(0)], "{code}");
        assert_eq!((bussed.accepted().len(), bussed.place().await?), (199, Some(head(&bussed.world).await?.end())));
    }
    Ok(())
}

/// Events that are not even put: they cannot be read, or a call would be too large with them.
#[tokio::test]
async fn events_that_are_damaged_or_too_large_are_passed_over_loudly() -> Result<()> {
    let mut bussed = Bussed::open().await?;
    bussed.segment(3, 0).await?;
    let log: Vec<String> = all(&bussed.world, 1_000).await?.into_iter().map(|entry| entry.json).collect();
    let mut events = log[1..].to_vec();
    let large =
        json!({ "id": "large", "type": "payment.scheduled", "at": "2026-11-20T09:00:00Z", "x": "x".repeat(26_000) });
    events[0] = large.to_string();
    events[1] = "[]".to_owned();
    let end = head(&bussed.world).await?.end();
    let segment = segment_of(end.epoch, end.number - 1, &events, bussed.world.now());
    let put = bussed.world.client().await.put_item().table_name(&bussed.world.environment.tables.log);
    put.set_item(Some(segment)).send().await?;
    let outcome = bussed.publish().await?;
    let of_bus = ["busEvents", "busRejections", "busMissed", "busSegmentsBehind"].map(|name| outcome[name].as_u64());
    assert_eq!(of_bus, [Some(1), Some(0), Some(2), Some(0)]);
    Ok(())
}

/// EventBridge accepts events for a bus that does not exist.
#[tokio::test]
async fn a_bus_that_is_missing_gets_its_events_once_it_is_there() -> Result<()> {
    let mut bussed = Bussed::open().await?;
    let before = bussed.place().await?;
    bussed.segment(25, 0).await?;
    bussed.bus.set_missing(true);
    for event in [json!({ "action": "publish" }), json!({ "Records": [] })] {
        let outcome = bussed.publish_over(bussed.world.client().await, event).await?;
        assert_eq!((&outcome["busEvents"], &outcome["busSegmentsBehind"]), (&json!(0), &json!(1)));
    }
    assert_eq!((bussed.place().await?, bussed.bus.calls()), (before, 0));
    bussed.bus.set_missing(false);
    bussed.publish().await?;
    assert_eq!(bussed.accepted().len(), 25);
    bussed.judge().await
}

#[tokio::test]
async fn a_bus_that_was_chosen_before_the_log_began_gets_its_first_segment() -> Result<()> {
    let mut bussed = Bussed::before_the_log().await?;
    bussed.publish().await?;
    bussed.publish().await?;
    bussed.segment(3, 0).await?;
    let outcome = bussed.publish_over(bussed.world.client().await, json!({ "Records": [] })).await?;
    assert_eq!((&outcome["busEvents"], &outcome["busMissed"]), (&json!(3), &json!(0)));
    assert_eq!(bussed.accepted(), events(&all(&bussed.world, 1_000).await?)?);
    Ok(())
}

#[tokio::test]
async fn each_bus_has_a_place_of_its_own() -> Result<()> {
    let mut bussed = Bussed::open().await?;
    bussed.segment(3, 0).await?;
    bussed.publish().await?;
    let first = std::mem::replace(&mut bussed.bus, Arc::new(Bus::named("other")));
    bussed.segment(2, 3).await?;
    bussed.publish().await?;
    bussed.segment(1, 5).await?;
    bussed.publish().await?;
    assert_eq!((first.accepted().len(), bussed.accepted().len()), (3, 1));
    // The first one goes on where it stopped.
    bussed.bus = first;
    bussed.publish().await?;
    assert_eq!(bussed.accepted().len(), 6);
    bussed.judge().await
}

/// Two runs put the same events until their first moves, which come at the same time.
#[tokio::test]
async fn of_two_runs_in_lockstep_one_ends_at_its_first_move() -> Result<()> {
    let mut bussed = Bussed::open().await?;
    for n in 0..3 {
        bussed.segment(200, 200 * n).await?;
    }
    let both_move = Arc::new(Barrier::new(2));
    let run = async || {
        let (both_move, moves) = (Arc::clone(&both_move), Arc::new(AtomicUsize::new(0)));
        let layers = Layers::over(bussed.world.recorder.clone()).with_fn(move |call, next| {
            let waits = call.operation == "UpdateItem" && moves.fetch_add(1, Ordering::Relaxed) == 0;
            let both_move = Arc::clone(&both_move);
            async move {
                if !waits {
                    return next.send(call).await;
                }
                both_move.wait().await;
                let moved = next.send(call).await;
                // Neither goes on before the other knows what came of its move.
                both_move.wait().await;
                moved
            }
        });
        let client = client_over(&bussed.world.client().await, layers);
        bussed.publish_over(client, json!({ "Records": [] })).await
    };
    let (one, other) = tokio::try_join!(run(), run())?;
    let mut put = [one, other].map(|outcome| outcome["busEvents"].as_u64());
    put.sort_unstable();
    assert_eq!(put, [Some(10), Some(600)]);
    bussed.judge().await
}

#[tokio::test]
async fn a_run_that_is_killed_at_any_call_loses_no_event_of_the_bus() -> Result<()> {
    let fates = [Fate::KillBefore, Fate::KillAfter, Fate::LoseReply];
    let mut points = CrashPoints::new("bus-killed", fates.map(Way::once));
    while let Some(point) = points.next_case() {
        let mut bussed = Bussed::open().await?;
        bussed.segment(170, 0).await?;
        let tick = json!({ "action": "publish" });
        let run = async |client| bussed.publish_over(client, tick).await;
        failing(&bussed.world, &mut points, point, |_| true, run).await?;
        bussed.segment(1, 200).await?;
        bussed.publish().await?;
        bussed.judge().await.with_context(|| format!("{point:?}"))?;
    }
    assert!(points.cases() > 20, "{points:?}");
    Ok(())
}

#[tokio::test]
async fn a_run_that_another_one_overtakes_leaves_no_event_of_the_bus_out() -> Result<()> {
    for number in 0..10 {
        let mut bussed = Bussed::open().await?;
        bussed.segment(2, 0).await?;
        bussed.segment(2, 2).await?;
        let tick = json!({ "action": "publish" });
        let run = async |client| bussed.publish_over(client, tick).await.map(drop);
        at_call(&bussed.world, "bus-overtaken", number, run, async { bussed.publish().await.map(drop) }).await?;
        bussed.segment(1, 4).await?;
        bussed.publish().await?;
        bussed.judge().await.with_context(|| format!("overtaken at call {number}"))?;
        // Each of them at most twice: who is overtaken ends.
        assert!(bussed.accepted().len() <= 9, "{} events", bussed.accepted().len());
    }
    Ok(())
}

/// Each call takes longer than the run has.
#[tokio::test]
async fn when_the_deadline_comes_no_more_events_are_put_whether_the_bus_accepts_or_not() -> Result<()> {
    for (is_throttled, events) in [(false, 10), (true, 0)] {
        let mut bussed = Bussed::open().await?;
        bussed.segment(25, 0).await?;
        let (before, pass) = (bussed.bus.calls(), bussed.world.passing());
        bussed.bus.reject(move |_, _| {
            pass(TimeDelta::minutes(1));
            is_throttled
        });
        let deadline = bussed.world.now().saturating_add(TimeDelta::seconds(59)).as_chrono().timestamp_millis();
        let tick = json!({ "action": "publish" });
        bussed.publish_until(u64::try_from(deadline)?, bussed.world.client().await, tick).await?;
        assert_eq!((bussed.bus.calls() - before, bussed.accepted().len()), (1, events));
        bussed.bus.reject(|_, _| false);
        bussed.publish().await?;
        bussed.judge().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_bus_that_is_behind_the_log_says_what_it_missed() -> Result<()> {
    let mut bussed = Bussed::open().await?;
    bussed.segment(1, 0).await?;
    // More than 35 days later.
    bussed.world.set_clock("2027-01-28T09:00:00Z")?;
    let outcome = bussed.publish().await?;
    assert_eq!((&outcome["busMissed"], &outcome["busSegmentsBehind"]), (&json!(1), &json!(0)));
    Ok(())
}

/// A restore ended the epoch before the bus's place. The bus has what the log lost, so it missed nothing.
#[tokio::test]
async fn a_bus_goes_on_in_the_next_epoch_of_a_torn_log_and_misses_nothing() -> Result<()> {
    let mut bussed = Bussed::open().await?;
    let (store, stream) = (bussed.world.store().await, bussed.world.stream().await?.arn().to_owned());
    for n in 0..2 {
        bussed.segment(1, n).await?;
    }
    bussed.publish().await?;
    lose_segment(&bussed.world, 3).await?;
    bussed.world.set_clock("2026-11-20T12:00:00Z")?;
    begin(&store).await?;
    let restored = Restored { stream, tables_to: None, log_to: Some("2026-11-20T11:00:00Z".parse()?) };
    finish(&store, &restored, || bussed.world.now(), |_, _| {}).await?;
    bussed.segment(1, 3).await?;
    let outcome = bussed.publish().await?;
    assert_eq!((&outcome["busMissed"], &outcome["busSegmentsBehind"]), (&json!(0), &json!(0)));
    let log = events(&all(&bussed.world, 1_000).await?)?;
    assert_eq!(bussed.accepted()[2..], log[2..]);
    Ok(())
}

/// The log was put back without a new epoch: its numbers are used again.
#[tokio::test]
async fn a_bus_that_is_beyond_the_log_stands_still() -> Result<()> {
    let mut bussed = Bussed::open().await?;
    bussed.segment(2, 0).await?;
    bussed.publish().await?;
    let (store, end) = (bussed.world.store().await, head(&bussed.world).await?.end());
    let mut from = end;
    for to in [
        LogPosition { number: end.number + 3, ..end },
        // The last segment is shorter now.
        LogPosition { number: end.number - 1, offset: 9, ..end },
        LogPosition { epoch: end.epoch.next(bussed.world.now()), number: 1, offset: 0 },
    ] {
        ensure!(store.move_log_consumer(Bus::CONSUMER, Some(from), to).await?);
        drop(bussed.world.outside.metrics.take());
        let error = bussed.publish().await.err().context("it says that all is well")?;
        assert!(error.to_string().contains("of the event bus payments; see docs/restore.md"), "{error}");
        assert_eq!((bussed.accepted().len(), bussed.place().await?), (2, Some(to)));
        let metrics = bussed.world.outside.metrics.take().concat();
        assert!(metrics.contains("\"BusSegmentsBehind\":1"), "{metrics}");
        from = to;
    }
    Ok(())
}
