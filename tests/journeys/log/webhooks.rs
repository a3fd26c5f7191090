//! Webhooks: every event reaches every endpoint, in order for each payment, whatever ends a run and whoever else runs.

use std::time::Duration;

use http::Method;
use payments_boot::Clock;
use payments_machine::layers::client_over;
use payments_machine::{Call, Fate, Layers};
use payments_model::EventFilter;
use payments_model::webhook::{EndpointId, EndpointUrl};
use payments_store::{EndpointChoice, WebhookState};
use payments_tests::given::create_endpoint;
use payments_tests::{CrashPoints, Message, Reaction, Way};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

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

/// The port of the only endpoint of most tests, and those of others.
const PORT: u16 = 7001;
const OTHER_PORT: u16 = 7002;
const THIRD_PORT: u16 = 7003;

/// The partition keys of endpoints and of their consumers.
const ENDPOINTS: &str = "WEBHOOK#ENDPOINTS";
const CONSUMERS: &str = "LOG#CONSUMERS";

/// The timeout of the function in `template.yaml`. 11 s are for the answer, 21 s for a request and
/// its record: nothing is begun after 23 s.
const TIMEOUT: TimeDelta = TimeDelta::seconds(55);

/// The longest time that a test waits for a request.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/hook")
}

/// An endpoint that gets every event at a port.
fn at_port(port: u16) -> Result<EndpointChoice> {
    let url = EndpointUrl::loopback(&url(port))?;
    Ok(EndpointChoice { url, description: String::new(), filter: EventFilter::default() })
}

/// The only endpoint of most tests.
fn id() -> Result<EndpointId> {
    Ok("erp".parse()?)
}

fn path(id: &str) -> String {
    format!("/webhook-endpoints/{id}")
}

/// A request that creates or changes an endpoint. Its URL is that of `PORT`, unless the fields have another.
fn put(id: &str, fields: &Value) -> Ask {
    let mut body = json!({ "url": url(PORT) });
    for (name, value) in fields.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    Ask::new(Method::PUT, &path(id)).json(&body)
}

fn delete(id: &str) -> Ask {
    Ask::new(Method::DELETE, &path(id))
}

/// A request of an operator to the only endpoint.
fn post(what: &str, body: &Value) -> Ask {
    Ask::post(&format!("{}/{what}", path("erp"))).json(body)
}

fn ask_test() -> Ask {
    Ask::post(&format!("{}/test", path("erp")))
}

impl Log {
    /// A world with one endpoint, which begins at the log's beginning and lacks these segments.
    async fn with_endpoint(segments: &[usize]) -> Result<Self> {
        let log = Self::open().await?;
        log.endpoint("erp", PORT).await?;
        log.segments(segments).await?;
        Ok(log)
    }

    /// Creates an endpoint, which begins at the log's beginning.
    async fn endpoint(&self, id: &str, port: u16) -> Result<()> {
        self.endpoint_from(id, &at_port(port)?, LogPosition::BEGINNING).await
    }

    async fn endpoint_from(&self, id: &str, chosen: &EndpointChoice, from: LogPosition) -> Result<()> {
        create_endpoint(&self.store().await, self.now(), id, chosen, from).await.map(drop)
    }

    /// The endpoint, as clients see it.
    async fn seen(&self) -> Result<Value> {
        Ok(self.get(&path("erp")).await?.body)
    }

    async fn state_of(&self, id: &str) -> Result<WebhookState> {
        self.store().await.webhook_state(&id.parse()?).await?.context("no endpoint")
    }

    async fn state(&self) -> Result<WebhookState> {
        self.state_of("erp").await
    }

    /// Sends the events of an endpoint to another port.
    async fn move_to(&self, port: u16) -> Result<()> {
        let moved = self.store().await.change_webhook_endpoint(&id()?, &at_port(port)?, false, self.now()).await?;
        ensure!(moved, "there is none");
        Ok(())
    }

    /// Sends an endpoint the log from its beginning again.
    async fn replay(&self, id: &str) -> Result<()> {
        ensure!(self.store().await.replay_webhook(&id.parse()?, self.start().await?, None).await?, "there is none");
        Ok(())
    }

    async fn ask_for_test(&self) -> Result<()> {
        ensure!(self.store().await.ask_webhook_test(&id()?, self.now(), None).await?, "there is none");
        Ok(())
    }

    /// Loses the endpoint's place in the log, as a restore of the log's table does.
    async fn lose_place(&self) -> Result<()> {
        self.delete(&self.environment.tables.log, &key(CONSUMERS, "webhook#erp")).await
    }

    /// Loses an endpoint, as a restore of the long-term table does.
    async fn lose_endpoint(&self, id: &str) -> Result<()> {
        self.delete(&self.environment.tables.history, &key(ENDPOINTS, id)).await
    }

    /// Makes an attribute of an endpoint or of its consumer unreadable.
    async fn spoil(&self, pk: &str, sk: &str, name: &str) -> Result<()> {
        let tables = &self.environment.tables;
        let table = if pk == ENDPOINTS { &tables.history } else { &tables.log };
        self.update_in(table, key(pk, sk), &format!("SET #{name} = :x"), &[(":x", text("never readable"))]).await
    }

    /// Makes a receiver answer with this status.
    fn answer(&self, port: u16, status: u16) {
        self.receivers.react(port, move |_| Reaction::Status(status));
    }

    fn messages(&self) -> Vec<Message> {
        self.receivers.messages(PORT)
    }

    /// The events that the only endpoint accepted.
    fn received(&self) -> Vec<Value> {
        self.receivers.events(PORT)
    }

    /// Waits until the only endpoint has so many events.
    async fn received_by_now(&self, events: usize) -> Result<()> {
        let began = Instant::now();
        while self.received().len() < events {
            ensure!(began.elapsed() < LONGEST_WAIT, "event {events} did not come");
            yield_now().await;
        }
        Ok(())
    }

    /// Cancels a payment that was created, and counts that.
    async fn cancel_event(&self, n: usize) -> Result<()> {
        let created = &self.events().await?[n];
        self.cancel(text_of(&created["accountId"]), text_of(&created["paymentId"])).await?;
        self.count().await.map(drop)
    }

    /// Runs the function, and something else at one of its calls, or after it. Returns its outcome.
    async fn publish_while(
        &self,
        harness: &str,
        number: usize,
        other: impl Future<Output = Result<()>>,
    ) -> Result<Value> {
        at_call(self, harness, number, async |client| self.publish_over(client).await, other).await
    }

    /// Runs the function with a lot of time, and something else beside it. Returns its outcome.
    async fn publish_beside(&self, other: impl Future<Output = Result<()>>) -> Result<Value> {
        let function = self.function(&self.client().await)?;
        let run = invoke(&function, Request::Tick, self.deadline(TimeDelta::days(1))?);
        Ok(tokio::try_join!(run, other)?.0)
    }

    /// Runs the function each minute, for so long. Returns the last outcome.
    async fn minutes(&self, minutes: usize) -> Result<Value> {
        let mut last = Value::Null;
        for _ in 0..minutes {
            self.pass(TimeDelta::minutes(1))?;
            last = self.publish().await?;
        }
        Ok(last)
    }

    /// The receiver at a port must have the whole log.
    async fn judge_at(&self, port: u16) -> Result<()> {
        self.receivers.settle().await;
        self.receivers.judge(port, &self.events().await?)
    }

    async fn judge(&self) -> Result<()> {
        self.judge_at(PORT).await
    }

    /// Runs the function, and then the receiver must have the whole log.
    async fn publish_all(&self) -> Result<()> {
        self.publish().await?;
        self.judge().await
    }
}

/// The function on tokio's time, which begins at the world's.
struct InTime {
    function: Publish,
    clock: Clock,
}

impl InTime {
    /// The function over calls that each wait for so long.
    async fn over(log: &Log, wait: impl Fn(&Call) -> Duration + Send + Sync + 'static) -> Result<Self> {
        let layers = Layers::over(log.recorder.clone()).with_fn(move |call, next| {
            let time = wait(&call);
            async move {
                if !time.is_zero() {
                    sleep(time).await;
                }
                next.send(call).await
            }
        });
        let client = client_over(&log.client().await, layers);
        let client = with_role(&client, "publish", &log.environment.tables)?;
        let (begin, origin) = (log.now().as_chrono(), Instant::now());
        let now = move || begin + TimeDelta::from_std(origin.elapsed()).unwrap_or_default();
        let clock = Clock::driven(now, |time| Box::pin(sleep(time)));
        let Dependencies { store, reports, metrics, .. } = log.dependencies(client);
        let function = Publish::new(store, reports, log.receivers.webhooks()?, clock.clone(), metrics);
        Ok(Self { function, clock })
    }

    /// Runs the function as a new segment does. Returns its outcome.
    async fn wake(&self) -> Result<Value> {
        let deadline = u64::try_from((self.clock.instant() + TIMEOUT).timestamp_millis())?;
        invoke(&self.function, Request::Woken, deadline).await
    }
}

#[tokio::test]
async fn each_endpoint_gets_what_it_wants_in_order_and_once() -> Result<()> {
    let log = Log::with_endpoint(&[]).await?;
    let cancelled = EventFilter { statuses: ["CANCELLED".parse()?].into(), ..EventFilter::default() };
    let shop = EventFilter { accounts: ["shop-62".parse()?].into(), ..EventFilter::default() };
    for (id, port, filter) in [("cancels", OTHER_PORT, cancelled), ("shop", THIRD_PORT, shop)] {
        let chosen = EndpointChoice { filter, ..at_port(port)? };
        log.endpoint_from(id, &chosen, LogPosition::BEGINNING).await?;
    }
    assert_eq!(log.publish().await?["deliveredEvents"], 0);
    log.segment(40).await?;
    log.publish().await?;
    for n in [2, 7] {
        log.cancel_event(n).await?;
    }
    log.segment(3).await?;
    assert_has(&log.publish().await?, &json!({ "webhookSegmentsBehind": 0, "failedDeliveries": 0 }));
    log.judge().await?;
    let events = log.events().await?;
    for (port, field, value, least) in
        [(OTHER_PORT, "status", "CANCELLED", 2), (THIRD_PORT, "payeeAccountId", "shop-62", 1)]
    {
        let wanted: Vec<_> = events.iter().filter(|event| event[field] == value).cloned().collect();
        assert!(wanted.len() >= least, "{field}: {}", wanted.len());
        assert_eq!(log.receivers.events(port), wanted, "{field}");
    }
    assert_eq!(log.received().len(), events.len(), "something came twice");
    // Nothing is new, so nothing is taken, written or sent.
    log.forget();
    let messages = log.messages().len();
    log.publish().await?;
    assert!(log.take_write_units().is_empty());
    assert_eq!(log.messages().len(), messages);
    Ok(())
}

#[tokio::test]
async fn a_run_that_is_killed_at_any_call_loses_nothing() -> Result<()> {
    let fates = [Fate::KillBefore, Fate::KillAfter, Fate::LoseReply];
    let mut points = CrashPoints::new("webhooks-killed", fates.map(Way::once));
    while let Some(point) = points.next_case() {
        let log = Log::with_endpoint(&[3]).await?;
        log.cancel_event(1).await?;
        failing(&log, &mut points, point, |_| true, async |client| log.publish_over(client).await).await?;
        log.receivers.settle().await;
        // The lease of the killed run may last until now.
        log.pass(publish::LEASE)?;
        log.segment(1).await?;
        log.cancel_event(2).await?;
        log.publish_all().await.with_context(|| format!("{point:?}"))?;
        let state = log.state().await?;
        assert_eq!((state.position, state.lease_until), (log.end().await?, None));
    }
    assert!(points.cases() > 45, "{points:?}");
    Ok(())
}

/// Runs the function, and another time at one of its calls. Each event must arrive once.
async fn overtaken(harness: &str, number: usize) -> Result<()> {
    let log = Log::with_endpoint(&[2, 2]).await?;
    let other = async {
        if harness == "webhooks-without-leases" {
            let place = key(CONSUMERS, "webhook#erp");
            log.update_in(&log.environment.tables.log, place, "REMOVE leaseUntil", &[]).await?;
        }
        log.publish().await.map(drop)
    };
    log.publish_while(harness, number, other).await?;
    log.publish_all().await?;
    let (received, logged) = (log.received().len(), log.events().await?.len());
    ensure!(received == logged, "{received} events were received, but the log has {logged}");
    Ok(())
}

#[tokio::test]
async fn two_runs_never_deliver_the_same_event_and_skip_none() -> Result<()> {
    for number in 0..20 {
        overtaken("webhooks-overtaken", number).await.with_context(|| format!("overtaken at call {number}"))?;
    }
    Ok(())
}

/// Without leases the test above would fail.
#[tokio::test]
async fn a_publisher_without_leases_is_found() -> Result<()> {
    let mut found = 0;
    for number in 0..20 {
        found += usize::from(overtaken("webhooks-without-leases", number).await.is_err());
    }
    assert!(found > 0, "nobody notices");
    Ok(())
}

#[tokio::test]
async fn a_lease_is_one_runs_alone_until_it_ends() -> Result<()> {
    let log = Log::with_endpoint(&[]).await?;
    let (store, now) = (log.store().await, log.now());
    let until = now.saturating_add(publish::LEASE);
    let first = store.take_webhook(&id()?, now, until).await?.context("it is free")?;
    assert!(store.take_webhook(&id()?, now, until).await?.is_none(), "two runs have it");
    let next = store.take_webhook(&id()?, until, until).await?.context("its lease has ended")?;
    assert!(next.lease > first.lease);
    Ok(())
}

/// Events that are appended while a run delivers are delivered, too: the head that the run knew at
/// first is behind the endpoint then.
#[tokio::test]
async fn an_endpoint_that_has_everything_is_not_behind() -> Result<()> {
    let mut complete = 0;
    for number in 0..20 {
        let log = Log::with_endpoint(&[2]).await?;
        let outcome = log.publish_while("webhooks-appended", number, log.segment(2)).await?;
        if log.state().await?.position == log.end().await? {
            assert_eq!(outcome["webhookSegmentsBehind"], 0, "something was appended before call {number}");
            complete += 1;
        }
    }
    assert!(complete > 3, "{complete}");
    Ok(())
}
