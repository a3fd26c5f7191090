//! Webhooks: every event reaches every endpoint, in order for each payment, whatever ends a run and whoever else runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_dynamodb::Client;
use payments_boot::Clock;
use payments_machine::layers::client_over;
use payments_machine::{Fate, Layers};
use payments_model::EventFilter;
use payments_model::webhook::{EndpointId, EndpointUrl};
use payments_store::{CreateEndpoint, EndpointChoice, Store, WebhookState};
use payments_tests::tables::{NO_DEADLINE, context};
use payments_tests::{Counting, CrashPoints, Reaction, Receivers, Way, with_role};
use publish::{Publish, Webhooks};
use tokio::task::yield_now;

use super::between::{at_call, failing};
use super::*;

mod api;
mod audited;
mod broken;
mod changed;
mod failing;
mod looks;
mod lost;
mod operated;
mod pace;
mod raced;
mod slow;
mod woken;

/// The port of the only endpoint of most tests.
const PORT: u16 = 7001;

/// The partition keys of endpoints and of their consumers.
const ENDPOINTS: &str = "WEBHOOK#ENDPOINTS";
const CONSUMERS: &str = "LOG#CONSUMERS";

/// A world with receivers.
struct Hooks {
    world: World,
    counting: Counting,
    receivers: Receivers,
}

impl Hooks {
    async fn open() -> Result<Self> {
        let world = World::open().await?;
        let counting = Counting::of(&world).await?;
        Ok(Self { world, counting, receivers: Receivers::default() })
    }

    /// With one endpoint, which begins at the log's beginning.
    async fn with_endpoint() -> Result<Self> {
        let hooks = Self::open().await?;
        hooks.endpoint("erp", PORT, EventFilter::default()).await?;
        Ok(hooks)
    }

    async fn endpoint(&self, id: &str, port: u16, filter: EventFilter) -> Result<()> {
        let url = EndpointUrl::loopback(&format!("http://127.0.0.1:{port}/hook"))?;
        let chosen = EndpointChoice { url, description: String::new(), filter };
        let store = self.world.store().await;
        let from = LogPosition::BEGINNING;
        ensure!(
            store
                .create_webhook_endpoint(
                    &id.parse()?,
                    &chosen,
                    from,
                    false,
                    self.world.now().as_chrono(),
                    store.endpoints_created().await?
                )
                .await?
                == CreateEndpoint::Created
        );
        Ok(())
    }

    /// Creates payments, and counts them: one segment.
    async fn segment(&mut self, payments: usize, from: usize) -> Result<()> {
        create(&self.world, payments, from).await?;
        self.counting.count(self.world.functions()).await.map(drop)
    }

    /// Cancels a payment that was created, and counts that.
    async fn cancel(&mut self, n: usize) -> Result<()> {
        let created = events(&all(&self.world, 1_000).await?)?;
        self.world.cancel(text_of(&created[n]["accountId"]), text_of(&created[n]["paymentId"])).await?;
        self.counting.count(self.world.functions()).await.map(drop)
    }

    /// The function over a client, with its role.
    async fn function(&self, client: &Client) -> Result<Publish> {
        self.function_with(client, self.receivers.webhooks()?).await
    }

    async fn function_with(&self, client: &Client, webhooks: Webhooks) -> Result<Publish> {
        let tables = &self.world.environment.tables;
        let store = Store::new(with_role(client, "publish", tables)?, tables.clone());
        let dependencies = self.world.dependencies_over(&self.world.recorder).await;
        Ok(Publish::new(store, dependencies.reports, webhooks, dependencies.clock, dependencies.metrics))
    }

    /// The function on tokio's time, which begins at the world's, and that clock. Its calls pass the layers.
    async fn function_in_time(&self, layers: Layers) -> Result<(Publish, Clock)> {
        let (world, outside) = (&self.world, &self.world.outside);
        let tables = &world.environment.tables;
        let client = with_role(&client_over(&world.client().await, layers), "publish", tables)?;
        let (begin, origin) = (world.now().as_chrono(), tokio::time::Instant::now());
        let now = move || begin + TimeDelta::from_std(origin.elapsed()).unwrap_or_default();
        let clock = Clock::driven(now, |time| Box::pin(tokio::time::sleep(time)));
        let (store, files) = (Store::new(client, tables.clone()), Arc::clone(&outside.reports));
        let metrics = outside.metrics.clone();
        Ok((Publish::new(store, files, self.receivers.webhooks()?, clock.clone(), metrics), clock))
    }

    /// Runs the function, and returns what it did.
    async fn publish(&self) -> Result<Value> {
        self.publish_over(&self.world.client().await, NO_DEADLINE).await
    }

    async fn publish_over(&self, client: &Client, deadline: u64) -> Result<Value> {
        let function = self.function(client).await?;
        let request = serde_json::from_value(json!({ "action": "publish" }))?;
        let outcome = function.handle(lambda_runtime::LambdaEvent::new(request, context(deadline))).await;
        Ok(serde_json::to_value(outcome.map_err(anyhow::Error::from_boxed)?)?)
    }

    /// Runs the function, and something else at one of its calls, or after it.
    async fn publish_while(&self, harness: &str, number: usize, other: impl Future<Output = Result<()>>) -> Result<()> {
        let run = async |client| self.publish_over(&client, NO_DEADLINE).await.map(drop);
        at_call(&self.world, harness, number, run, other).await
    }

    async fn state(&self) -> Result<WebhookState> {
        let state = self.world.store().await.webhook_state(&id()?).await?;
        state.context("no endpoint")
    }

    /// Lets some time pass.
    fn pass(&self, time: TimeDelta) -> Result<()> {
        self.world.set_clock(&self.world.now().saturating_add(time).to_string())
    }

    async fn judge(&self) -> Result<()> {
        self.receivers.settle().await;
        self.receivers.judge(PORT, &events(&all(&self.world, 1_000).await?)?)
    }
}

fn id() -> Result<EndpointId> {
    Ok("erp".parse()?)
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[tokio::test]
async fn each_endpoint_gets_what_it_wants_in_order_and_once() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    let cancelled = EventFilter { statuses: ["CANCELLED".parse()?].into(), ..EventFilter::default() };
    hooks.endpoint("cancels", 7002, cancelled).await?;
    let shop = EventFilter { accounts: ["shop-62".parse()?].into(), ..EventFilter::default() };
    hooks.endpoint("shop", 7003, shop).await?;
    assert_eq!(hooks.publish().await?["deliveredEvents"], 0);
    hooks.segment(40, 0).await?;
    hooks.publish().await?;
    for n in [2, 7] {
        hooks.cancel(n).await?;
    }
    hooks.segment(3, 40).await?;
    let outcome = hooks.publish().await?;
    assert_eq!((&outcome["webhookSegmentsBehind"], &outcome["failedDeliveries"]), (&json!(0), &json!(0)));
    hooks.judge().await?;
    let log = events(&all(&hooks.world, 1_000).await?)?;
    let some = |wanted: &dyn Fn(&Value) -> bool| log.iter().filter(|event| wanted(event)).cloned().collect::<Vec<_>>();
    let (cancels, shop) =
        (some(&|event| event["status"] == "CANCELLED"), some(&|event| event["payeeAccountId"] == "shop-62"));
    assert!(cancels.len() == 2 && !shop.is_empty(), "{} of the shop", shop.len());
    assert_eq!((hooks.receivers.events(7002), hooks.receivers.events(7003)), (cancels, shop));
    assert_eq!(hooks.receivers.events(PORT).len(), log.len(), "something came twice");
    // Nothing is new, so nothing is taken, written or sent.
    drop(hooks.world.take_units());
    let messages = hooks.receivers.messages(PORT).len();
    hooks.publish().await?;
    assert!(hooks.world.take_write_units().is_empty());
    assert_eq!(hooks.receivers.messages(PORT).len(), messages);
    Ok(())
}

#[tokio::test]
async fn a_run_that_is_killed_at_any_call_loses_nothing() -> Result<()> {
    let fates = [Fate::KillBefore, Fate::KillAfter, Fate::LoseReply];
    let mut points = CrashPoints::new("webhooks-killed", fates.map(Way::once));
    while let Some(point) = points.next_case() {
        let mut hooks = Hooks::with_endpoint().await?;
        hooks.segment(3, 0).await?;
        hooks.cancel(1).await?;
        let run = async |client| hooks.publish_over(&client, NO_DEADLINE).await;
        failing(&hooks.world, &mut points, point, |_| true, run).await?;
        hooks.receivers.settle().await;
        // Its lease may last until now.
        hooks.pass(publish::LEASE)?;
        hooks.segment(1, 3).await?;
        hooks.cancel(2).await?;
        hooks.publish().await?;
        hooks.judge().await.with_context(|| format!("{point:?}"))?;
        let state = hooks.state().await?;
        assert_eq!((state.position, state.lease_until), (head(&hooks.world).await?.end(), None));
    }
    assert!(points.cases() > 45, "{points:?}");
    Ok(())
}

/// Runs the function, and another time at one of its calls. Each event must arrive once.
async fn overtaken(number: usize, with_leases: bool) -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.segment(2, 0).await?;
    hooks.segment(2, 2).await?;
    let other = async {
        if !with_leases {
            let (client, table) = (hooks.world.client().await, &hooks.world.environment.tables.log);
            let key = [("pk".to_owned(), text(CONSUMERS)), ("sk".to_owned(), text("webhook#erp"))].into();
            let update = client.update_item().table_name(table).set_key(Some(key));
            update.update_expression("REMOVE leaseUntil").send().await?;
        }
        hooks.publish().await.map(drop)
    };
    let harness = if with_leases { "webhooks-overtaken" } else { "webhooks-without-leases" };
    hooks.publish_while(harness, number, other).await?;
    hooks.publish().await?;
    hooks.judge().await?;
    let (received, log) = (hooks.receivers.events(PORT).len(), all(&hooks.world, 1_000).await?.len());
    ensure!(received == log, "{received} events were received, but the log has {log}");
    Ok(())
}

#[tokio::test]
async fn two_runs_never_deliver_the_same_event_and_skip_none() -> Result<()> {
    for number in 0..20 {
        overtaken(number, true).await.with_context(|| format!("overtaken at call {number}"))?;
    }
    Ok(())
}

/// Without leases the test above would fail.
#[tokio::test]
async fn a_publisher_without_leases_is_found() -> Result<()> {
    let mut found = 0;
    for number in 0..20 {
        found += usize::from(overtaken(number, false).await.is_err());
    }
    assert!(found > 0, "nobody notices");
    Ok(())
}

#[tokio::test]
async fn an_endpoint_that_hangs_holds_up_neither_the_others_nor_the_journal() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.endpoint("slow", 7002, EventFilter::default()).await?;
    hooks.receivers.react(7002, |_| Reaction::Hang);
    hooks.segment(2, 0).await?;
    let (receivers, client) = (hooks.receivers.clone(), hooks.world.client().await);
    let function = hooks.function(&client).await?;
    let deadline = u64::try_from(hooks.world.now().saturating_add(TimeDelta::days(1)).as_chrono().timestamp_millis())?;
    let request = serde_json::from_value(json!({ "action": "publish" }))?;
    let run = function.handle(lambda_runtime::LambdaEvent::new(request, context(deadline)));
    let is_over = AtomicBool::new(false);
    let run = async {
        let ended = run.await.map_err(anyhow::Error::from_boxed);
        is_over.store(true, Ordering::Relaxed);
        ended
    };
    let more = async {
        while receivers.events(PORT).len() < 2 {
            yield_now().await;
        }
        // More comes while the other one hangs, and is delivered in the same run: the stream's next batch waits for it.
        hooks.segment(3, 2).await?;
        while receivers.events(PORT).len() < 5 {
            ensure!(!is_over.load(Ordering::Relaxed), "the run ended before the endpoint that hangs did");
            yield_now().await;
        }
        receivers.release();
        anyhow::Ok(())
    };
    let (outcome, ()) = tokio::try_join!(run, more)?;
    assert_eq!((outcome.journal_files, outcome.journaled_events), (1, 2));
    assert_eq!(outcome.webhooks.context("no webhooks")?.failed_deliveries, 1);
    hooks.judge().await
}

/// What is appended while a run delivers is delivered, too: the head that it knew at first is behind the endpoint then.
#[tokio::test]
async fn an_endpoint_that_has_everything_is_not_behind() -> Result<()> {
    let mut complete = 0;
    for number in 0..20 {
        let mut hooks = Hooks::with_endpoint().await?;
        hooks.segment(2, 0).await?;
        let mut behind = Value::Null;
        let run = async |client| {
            behind = hooks.publish_over(&client, NO_DEADLINE).await?["webhookSegmentsBehind"].clone();
            anyhow::Ok(())
        };
        let more = async {
            create(&hooks.world, 2, 2).await?;
            Counting::of(&hooks.world).await?.count(hooks.world.functions()).await.map(drop)
        };
        at_call(&hooks.world, "webhooks-appended", number, run, more).await?;
        let has_everything = hooks.state().await?.position == head(&hooks.world).await?.end();
        if has_everything {
            assert_eq!(behind, 0, "something was appended before call {number}");
            complete += 1;
        }
    }
    assert!(complete > 3, "{complete}");
    Ok(())
}
