//! A run that waits for a receiver looks again each second for endpoints that have something to get by now.
//!
//! On paused time: only what a test makes slow takes any.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use payments_machine::Call;
use payments_store::WebhookCommit;
use payments_tests::LogLines;
use publish::WebhookOutcome;
use tokio::time::{Instant, sleep};

use super::*;

/// The port of the endpoint beside which others are looked for.
const SLOW_PORT: u16 = 7002;

/// The port of one more.
const THIRD_PORT: u16 = 7003;

/// The timeout of the function in `template.yaml`. 11 s are for the answer, 21 s for a request and what is written of it: nothing is begun
/// after 23 s.
const TIMEOUT: TimeDelta = TimeDelta::seconds(55);

/// What a read takes while DynamoDB is slow: less than the timeout of an attempt.
const SLOW_READ: Duration = Duration::from_millis(1_900);

/// Runs the function, whose calls wait for so long.
async fn run_over(hooks: &Hooks, wait: impl Fn(&Call) -> Duration + Send + Sync + 'static) -> Result<WebhookOutcome> {
    let layers = Layers::over(hooks.world.recorder.clone()).with_fn(move |call, next| {
        let time = wait(&call);
        async move {
            if !time.is_zero() {
                sleep(time).await;
            }
            next.send(call).await
        }
    });
    let (function, clock) = hooks.function_in_time(layers).await?;
    let deadline = u64::try_from((clock.instant() + TIMEOUT).timestamp_millis())?;
    let request = serde_json::from_value(json!({ "Records": [] }))?;
    let run = function.handle(lambda_runtime::LambdaEvent::new(request, context(deadline))).await;
    run.map_err(anyhow::Error::from_boxed)?.webhooks.context("no webhooks")
}

/// Runs the function, whose looks read the endpoints slowly from `slow_from` on.
async fn run(hooks: &Hooks, slow_from: Duration) -> Result<WebhookOutcome> {
    let (origin, history) = (Instant::now(), hooks.world.environment.tables.history.clone());
    let is_slow = move |call: &Call| origin.elapsed() >= slow_from && call.input()["TableName"] == *history;
    run_over(hooks, move |call| if is_slow(call) { SLOW_READ } else { Duration::ZERO }).await
}

/// Lets an endpoint answer its requests after these times, and all further ones after the last. Returns when they came.
fn answer_after(hooks: &Hooks, port: u16, millis: &'static [u64]) -> Arc<Mutex<Vec<Duration>>> {
    let (origin, came) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
    let noted = Arc::clone(&came);
    hooks.receivers.react(port, move |_| {
        let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.push(origin.elapsed());
        Reaction::Slow(Duration::from_millis(millis[noted.len().min(millis.len()) - 1]))
    });
    came
}

/// Four events wait for an endpoint, whose requests are returned, and for a slow one. The second request to that one lasts until 25 s.
async fn beside_a_slow_one() -> Result<(Hooks, Arc<Mutex<Vec<Duration>>>)> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.endpoint("slow", SLOW_PORT, EventFilter::default()).await?;
    hooks.segment(2, 0).await?;
    hooks.segment(2, 2).await?;
    answer_after(&hooks, SLOW_PORT, &[11_000, 14_000]);
    let came = answer_after(&hooks, PORT, &[0]);
    Ok((hooks, came))
}

#[tokio::test(start_paused = true)]
async fn a_look_that_takes_long_holds_up_no_delivery() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.segment(31, 0).await?;
    let came = answer_after(&hooks, PORT, &[300]);
    run(&hooks, Duration::ZERO).await?;
    let came = came.lock().unwrap().clone();
    assert_eq!(came.len(), 5, "1 + 2 + 4 + 8 + 16 events");
    assert!(came[4] - came[0] < Duration::from_millis(1_300), "a look lies between requests: {came:?}");
    hooks.judge().await
}

#[tokio::test(start_paused = true)]
async fn a_look_that_ends_after_the_deadline_is_dropped() -> Result<()> {
    let (hooks, came) = beside_a_slow_one().await?;
    let publisher = run(&hooks, Duration::from_millis(21_900));
    let more = async {
        sleep(Duration::from_millis(21_950)).await;
        ensure!(hooks.world.store().await.ask_webhook_test(&id()?, hooks.world.now()).await?);
        anyhow::Ok(())
    };
    tokio::try_join!(publisher, more)?;
    let last = came.lock().unwrap().last().copied().unwrap_or_default();
    assert!(last < Duration::from_secs(23), "the test was sent at {last:?}");
    hooks.publish().await?;
    assert_eq!(came.lock().unwrap().len(), 4, "two rounds, another one, and the test");
    Ok(())
}

/// The deadline comes while a run reads what it would send.
#[tokio::test(start_paused = true)]
async fn what_is_read_when_the_deadline_comes_is_not_sent() -> Result<()> {
    let (hooks, came) = beside_a_slow_one().await?;
    let (origin, log, is_slow) = (Instant::now(), hooks.world.environment.tables.log.clone(), AtomicBool::new(false));
    // From the moment on at which the endpoint's lease is taken for the fifth event.
    let publisher = run_over(&hooks, move |call| {
        let takes = call.operation == "UpdateItem" && origin.elapsed() > Duration::from_secs(20);
        if is_slow.fetch_or(takes, Ordering::Relaxed) && call.input()["TableName"] == *log {
            SLOW_READ
        } else {
            Duration::ZERO
        }
    });
    let more = async {
        sleep(Duration::from_millis(20_500)).await;
        create(&hooks.world, 1, 4).await?;
        Counting::of(&hooks.world).await?.count(hooks.world.functions()).await.map(drop)
    };
    tokio::try_join!(publisher, more)?;
    let last = came.lock().unwrap().last().copied().unwrap_or_default();
    assert!(last < Duration::from_secs(23), "sent at {last:?}");
    hooks.publish().await?;
    hooks.judge().await
}

/// The endpoint gives its lease back, because a request as long as its last one would last past the deadline.
#[tokio::test(start_paused = true)]
async fn an_endpoint_that_gave_its_lease_back_before_the_deadline_is_not_served_again() -> Result<()> {
    let mut hooks = Hooks::open().await?;
    hooks.endpoint("slow", SLOW_PORT, EventFilter::default()).await?;
    hooks.endpoint("third", THIRD_PORT, EventFilter::default()).await?;
    for n in 0..4 {
        hooks.segment(1, n).await?;
    }
    let state = async || hooks.world.store().await.webhook_state(&"slow".parse()?).await?.context("no state");
    let before = state().await?.lease;
    let came = answer_after(&hooks, SLOW_PORT, &[14_000]);
    // The run waits for this one until 25 s.
    answer_after(&hooks, THIRD_PORT, &[11_000, 14_000]);
    run(&hooks, Duration::MAX).await?;
    assert_eq!(came.lock().unwrap().len(), 1, "the second began at 15 s, and lasted until 29 s");
    let after = state().await?;
    assert_eq!((after.lease, after.lease_until), (before + 1, None), "its lease was taken again, for nothing");
    Ok(())
}

/// Of an endpoint that another run serves, a run knows how far it is from its last look.
#[tokio::test(start_paused = true)]
async fn an_endpoint_that_another_run_serves_is_judged_by_the_last_look() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.endpoint("slow", SLOW_PORT, EventFilter::default()).await?;
    hooks.segment(1, 0).await?;
    answer_after(&hooks, SLOW_PORT, &[12_000]);
    let (store, now, end) = (hooks.world.store().await, hooks.world.now(), head(&hooks.world).await?.end());
    let until = now.saturating_add(publish::LEASE);
    let taken = store.take_webhook(&id()?, now, until).await?.context("it is not free")?;
    let another = async {
        sleep(Duration::from_secs(5)).await;
        let commit = WebhookCommit { to: end, progress: &taken.progress, lease_until: None, disabled: None };
        store.commit_webhook(&id()?, &taken, &commit).await?.context("the lease is lost")
    };
    let (outcome, _) = tokio::try_join!(run(&hooks, Duration::MAX), another)?;
    assert_eq!((outcome.delivered_events, outcome.webhook_segments_behind), (1, 0));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_run_logs_each_endpoint_that_cannot_be_read_once() -> Result<()> {
    let mut hooks = Hooks::open().await?;
    hooks.endpoint("slow", SLOW_PORT, EventFilter::default()).await?;
    hooks.endpoint("damaged", THIRD_PORT, EventFilter::default()).await?;
    hooks.endpoint("lost", THIRD_PORT, EventFilter::default()).await?;
    broken::spoil(&hooks, ENDPOINTS, "damaged", "url").await?;
    let (client, table) = (hooks.world.client().await, &hooks.world.environment.tables.history);
    let key = [("pk".to_owned(), text(ENDPOINTS)), ("sk".to_owned(), text("lost"))].into();
    client.delete_item().table_name(table).set_key(Some(key)).send().await?;
    hooks.segment(1, 0).await?;
    answer_after(&hooks, SLOW_PORT, &[12_000]);
    let (log, guard) = LogLines::start();
    let outcome = run(&hooks, Duration::MAX).await?;
    drop(guard);
    assert_eq!((outcome.webhooks_unreadable, outcome.delivered_events), (2, 1));
    let lines = log.take()?;
    for id in ["damaged", "lost"] {
        let said = lines.iter().filter(|line| line["level"] == "ERROR" && line["endpoint"] == id).count();
        assert_eq!(said, 1, "{id}");
    }
    Ok(())
}
