//! The event bus gets every event of the log at least once, whatever it rejects, ends a run, or runs beside it.

use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use payments_local::Function;
use payments_local::interceptor::Fate;
use payments_store::Store;
use payments_tests::tables::{NO_DEADLINE, context};
use payments_tests::{Bus, Counting, with_role};
use publish::{EventBus, Publish};

use super::between::{at_call, with_fate};
use super::*;

/// A world with a bus, which begins where the log ends.
struct Bussed {
    world: World,
    counting: Counting,
    bus: Arc<Bus>,
}

impl Bussed {
    async fn open() -> Result<Self> {
        let world = World::open().await?;
        let counting = Counting::of(&world).await?;
        let mut bussed = Self { world, counting, bus: Arc::default() };
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

    /// Runs the function with its role.
    async fn publish_over(&self, client: Client, event: Value) -> Result<Value> {
        let tables = &self.world.environment.tables;
        let store = Store::new(with_role(&client, Function::Publish, tables)?, tables.clone());
        let dependencies = self.world.dependencies_over(&self.world.recorder).await;
        let function = Publish::new(store, dependencies.reports, None, dependencies.clock, dependencies.metrics);
        let bus: Arc<dyn EventBus> = Arc::clone(&self.bus) as _;
        let event = lambda_runtime::LambdaEvent::new(serde_json::from_value(event)?, context(NO_DEADLINE));
        let outcome = function.with_bus(Some(bus)).handle(event).await;
        Ok(serde_json::to_value(outcome.map_err(anyhow::Error::from_boxed)?)?)
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
    let outcome = bussed.publish_over(bussed.world.client().await, json!({ "Records": [] })).await?;
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
    // Three calls for all, and then one for those of them that were rejected.
    bussed.bus.reject(|call, id| call <= 3 && id.contains('7'));
    let outcome = bussed.publish().await?;
    let rejected = outcome["busRejections"].as_u64().unwrap_or(0);
    assert!(rejected > 0 && rejected < 25, "{outcome}");
    bussed.judge().await?;
    assert_eq!((outcome["busEvents"].as_u64(), bussed.accepted().len()), (Some(25), 25));
    Ok(())
}

#[tokio::test]
async fn a_bus_that_goes_on_rejecting_stops_its_own_events_and_not_the_journal() -> Result<()> {
    let mut bussed = Bussed::open().await?;
    bussed.segment(200, 0).await?;
    let last = events(&all(&bussed.world, 1_000).await?)?.pop().context("no event")?;
    let id = last["id"].as_str().context("no id")?.to_owned();
    bussed.bus.reject(move |_, event| event == id);
    for _ in 0..2 {
        let error = bussed.publish().await.err().context("it says that all is well")?;
        assert!(error.to_string().contains("ThrottlingException: slower"), "{error}");
    }
    // The first stretch was passed, the second was not: it is repeated whole.
    assert_eq!(bussed.accepted().len(), 160 + 2 * 39);
    let journal = bussed.world.store().await.log_consumer("journal").await?;
    assert_eq!(journal, Some(head(&bussed.world).await?.end()));
    bussed.bus.reject(|_, _| false);
    bussed.publish().await?;
    bussed.judge().await
}

#[tokio::test]
async fn a_run_that_is_killed_at_any_call_loses_no_event_of_the_bus() -> Result<()> {
    for fate in [Fate::KillBefore, Fate::KillAfter, Fate::LoseReply] {
        for number in 0.. {
            let mut bussed = Bussed::open().await?;
            bussed.segment(170, 0).await?;
            let tick = json!({ "action": "publish" });
            let run = with_fate(&bussed.world, fate, number, async |client| bussed.publish_over(client, tick).await);
            let run = run.await;
            bussed.segment(1, 200).await?;
            bussed.publish().await?;
            bussed.judge().await.with_context(|| format!("{fate:?} at call {number}"))?;
            if run.is_some_and(|run| run.is_ok()) && number > 6 {
                break;
            }
        }
    }
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
        at_call(&bussed.world, number, run, async { bussed.publish().await.map(drop) }).await?;
        bussed.segment(1, 4).await?;
        bussed.publish().await?;
        bussed.judge().await.with_context(|| format!("overtaken at call {number}"))?;
        // Each of them at most twice: who is overtaken ends.
        assert!(bussed.accepted().len() <= 9, "{} events", bussed.accepted().len());
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
    // The log was put back without a new epoch.
    let store = bussed.world.store().await;
    let end = head(&bussed.world).await?.end();
    ensure!(store.move_log_consumer("bus", Some(end), LogPosition { number: end.number + 3, ..end }).await?);
    let error = bussed.publish().await.err().context("it says that all is well")?;
    assert!(error.to_string().contains("of the event bus; see docs/runbook.md"), "{error}");
    Ok(())
}
