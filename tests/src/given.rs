//! The steps that prepare a world for the functions' events, in process and under the emulator.
//!
//! A step is a case of an HTTP function, whose request must succeed, or one of these:
//!
//! | step | what happens |
//! |---|---|
//! | `calendars` | the bank's currencies have calendars |
//! | `holiday-announced` | for each date rule a payment of Christmas 2035 is created, and then the calendar has it |
//! | `claimed`, `processed`, `failed` | the payment of `ingest/create`, which is also the first of `ingest/batch`, becomes PENDING, PROCESSED or FAILED |
//! | `second-claimed` | the second payment of `ingest/batch` becomes PENDING |
//! | `redriven` | the request of the first payment is sent again |
//! | `failing-endpoint` | the webhook endpoint of `webhooks/put` fails at the first of three events |
//! | `most-endpoints` | there are as many webhook endpoints as there can be |
//! | `a-day` | seven payments of 15 June 2090 have every status, and one of the next day is created |
//! | `reported` | the PROCESSED payments are reported |
//! | `counted` | the changes are counted |
//! | `miscounted` | a counter is wrong, and a recount found it 26 hours before |

use anyhow::{Context as _, Result, bail, ensure};
use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use lambda_runtime::LambdaEvent;
use payments_bank::Functions;
use payments_http::routes::{DEFAULT_FUNCTION, by_key};
use payments_machine::Handlers as _;
use payments_model::webhook::EndpointId;
use payments_model::{
    Actor, Event, EventFields, EventFilter, Failure, Head, HeadKey, PaymentId, Settlement, Transition, UtcSecond,
};
use payments_store::{
    BlockingEvent, CreateEndpoint, Decided, Delivery, DeliveryEnd, DeliveryError, DueSort, EndpointChoice, LogPosition,
    LogRead, MAX_ENDPOINTS, Moved, Progress, Store, WebhookCommit,
};
use serde_json::json;

use crate::ask::{Ask, Reply};
use crate::events::requests::{NOW, given, request_text};
use crate::tables::{NO_DEADLINE, context, number, text};
use crate::world::World;

/// The most days ahead that payments may be due here: the events ask for June 2090, so that they
/// work for a long time with a real clock too.
pub const HORIZON_DAYS: u32 = 25_000;

/// The account of the events.
pub const ACCOUNT: &str = "GB29NWBK60161331926819";

/// The idempotency keys of `ingest/batch`; the first is also that of `ingest/create`.
const FIRST: &str = "rent-2090-06";
const SECOND: &str = "rent-2090-07";

/// The time of the steps before a request.
const HALF_AN_HOUR_AGO: &str = "2026-11-20T08:30:00Z";

/// The creation of a prepared world's payments.
const CREATED_AT: &str = "2026-11-20T08:00:00Z";

/// The transaction id of the first payment that is `PROCESSED`.
const TRANSACTION: &str = "TX-20900615-1";

/// A world on an embedded engine after these steps, at a later time.
pub async fn world_at(steps: &[&str], moved_at: &str, now: &str) -> Result<World> {
    let world = World::with(|environment| {
        environment.horizon_days = HORIZON_DAYS;
        if steps.contains(&"calendars") {
            environment.calendars = "EUR=T2,GBP=GB,USD=FED".to_owned();
            environment.cut_offs = "T2=16:00,FED=17:30".to_owned();
        } else if steps.contains(&"holiday-announced") {
            environment.calendars = "GBP=GB".to_owned();
        }
        if steps.contains(&"refused-feed") {
            environment.refused_clients = "other,feed".to_owned();
        }
        if steps.contains(&"day-limit") {
            environment.max_day = "GBP=1".to_owned();
        }
        if steps.contains(&"feed-expected") {
            (environment.feed_by, environment.feed_payments) = ("09:00".to_owned(), "1".to_owned());
            environment.calendars = "EUR=T2,GBP=GB".to_owned();
        }
        if steps.contains(&"payment-limit") {
            environment.max_payment = "EUR=1,GBP=125000".to_owned();
        }
    });
    let world = world.await?;
    prepare(&world, steps, moved_at).await?;
    world.set_clock(now)?;
    Ok(world)
}

/// A world as the request of a case finds it.
pub async fn world_of(name: &str) -> Result<World> {
    let world = world_at(&given(name)?.unwrap_or_default(), HALF_AN_HOUR_AGO, NOW).await;
    let world = world.with_context(|| format!("preparing {name}"))?;
    drop(world.recorder.take_operations());
    Ok(world)
}

/// Brings a world to where an event finds it, over the API as far as possible. The first request arrives at
/// `CREATED_AT`; later ones arrive, and all else happens to its payments, at `moved_at`.
pub async fn prepare(world: &World, steps: &[&str], moved_at: &str) -> Result<()> {
    world.set_clock(CREATED_AT)?;
    let mut is_first = true;
    for step in steps {
        if step.contains('/') {
            if !is_first {
                world.set_clock(moved_at)?;
            }
            succeed(world, step).await?;
            is_first = false;
        } else {
            Box::pin(take(world, step, moved_at)).await.with_context(|| (*step).to_owned())?;
        }
    }
    Ok(())
}

/// Sends the request of a case, which must succeed.
async fn succeed(world: &World, name: &str) -> Result<()> {
    let reply = run(world, name).await?;
    ensure!(reply.status < 300, "{name}: {reply}");
    Ok(())
}

/// Takes a step that is not a request.
async fn take(world: &World, step: &str, at: &str) -> Result<()> {
    let happens = |event| async move { move_on(world, payment(FIRST)?, vec![event], at).await };
    match step {
        // The bank's configuration has them.
        "calendars" | "refused-feed" | "payment-limit" | "day-limit" | "feed-expected" => Ok(()),
        "holiday-announced" => before_the_holiday(world).await,
        "failing-endpoint" => failing_endpoint(world).await,
        "most-endpoints" => {
            for n in 0..MAX_ENDPOINTS {
                endpoint(world, &format!("endpoint-{n}")).await?;
            }
            Ok(())
        }
        "claimed" => happens(Event::Sweep).await,
        "second-claimed" => move_on(world, payment(SECOND)?, vec![Event::Sweep], at).await,
        "processed" => happens(processed()?).await,
        "failed" => happens(failed()).await,
        "redriven" => {
            let (key, _) = scheduled(world, payment(FIRST)?).await?;
            ensure!(world.store().await.redrive(&key, 1, 2, at.parse()?).await?, "it is pending");
            Ok(())
        }
        "a-day" => a_day(world, at).await,
        "reported" => report_took(world, "PROCESSED").await,
        "counted" => world.count_all().await.map(drop),
        "miscounted" => miscount(world).await,
        other => bail!("no step {other}"),
    }
}

/// Creates a webhook endpoint, which begins at the log's beginning.
async fn endpoint(world: &World, id: &str) -> Result<EndpointId> {
    let url = "https://hooks.shop.co.uk/payments".parse()?;
    let chosen = EndpointChoice { url, description: "The shop's books".to_owned(), filter: EventFilter::default() };
    create_endpoint(&world.store().await, world.now(), id, &chosen, LogPosition::BEGINNING).await
}

/// Creates a webhook endpoint, which begins at a place.
pub async fn create_endpoint(
    store: &Store,
    now: UtcSecond,
    id: &str,
    chosen: &EndpointChoice,
    from: LogPosition,
) -> Result<EndpointId> {
    let (id, before) = (id.parse()?, store.endpoints_created().await?);
    let created = store.create_webhook_endpoint(&id, chosen, from, false, now.as_chrono(), before).await?;
    ensure!(created == CreateEndpoint::Created, "{id} was not created: {created:?}");
    Ok(id)
}

/// Creates a webhook endpoint that did not accept the first of three events.
async fn failing_endpoint(world: &World) -> Result<()> {
    for name in ["ingest/batch", "ingest/cancel"] {
        succeed(world, name).await?;
    }
    world.count_all().await?;
    let id = endpoint(world, "shop").await?;
    let store = world.store().await;
    let now = world.now();
    let head = store.log_head().await?.context("no log")?;
    let start = head.start(now);
    ensure!(store.replay_webhook(&id, start, None).await?, "the webhook is missing");
    let taken = store.take_webhook(&id, now, now).await?.context("nobody has it")?;
    let after = LogPosition { offset: 1, ..start };
    let LogRead::Page(first) = store.log_page(&head, start, 3, 1, now).await? else { bail!("no event") };
    // The payments of a batch are created at the same time, in any order.
    let ids = first.entries.iter().map(|entry| Ok(serde_json::from_str::<EventFields>(&entry.json)?.id));
    let event_id = ids.collect::<Result<Vec<_>>>()?.into_iter().min().context("no event")?;
    let outcome = DeliveryEnd { kind: "refused".to_owned(), status: Some(500) };
    let message_id = "msg_0f3d5b7a9c1e2f4d6b8a0c2e4f6d8b0a".to_owned();
    let mut progress = Progress {
        failures: 1,
        failing_since: Some(now),
        next_try_at: Some(now.saturating_add(chrono::TimeDelta::seconds(5))),
        blocking: Some(BlockingEvent { event_id, after }),
        last_error: Some(DeliveryError { at: now, outcome: outcome.clone() }),
        ..Progress::default()
    };
    progress.remember(Delivery { at: now, message_id, events: 1, bodies: 1, took_ms: 250, outcome });
    let commit = WebhookCommit { to: start, progress: &progress, lease_until: None, disabled: None };
    ensure!(store.commit_webhook(&id, &taken, &commit).await?.is_some(), "it is ours");
    Ok(())
}

/// Creates payments of 15 June 2090, gives them every status, and creates one of the next day.
async fn a_day(world: &World, moved_at: &str) -> Result<()> {
    let settled = |settlement| vec![Event::Sweep, settlement];
    let (processed, failed) = (settled(processed()?), settled(failed()));
    let events = [vec![], vec![], vec![], vec![Event::Sweep], processed, failed, vec![Event::Cancel]];
    for (n, events) in events.into_iter().enumerate() {
        let payment_id = ask(world, &format!("bill-{n}"), "2090-06-15").await?;
        move_on(world, payment_id, events, moved_at).await?;
    }
    ask(world, "bill-7", "2090-06-16").await?;
    Ok(())
}

fn processed() -> Result<Event> {
    Ok(Event::Settle(Settlement::Processed(TRANSACTION.parse()?)))
}

fn failed() -> Event {
    Event::Settle(Settlement::Failed(Failure::new(Some("AC07"), "The payee's account is closed.")))
}

/// The id of the account's payment under an idempotency key.
fn payment(key: &str) -> Result<PaymentId> {
    Ok(PaymentId::derive(&ACCOUNT.parse()?, &key.parse()?))
}

/// Creates a payment that no event is about.
async fn ask(world: &World, key: &str, date: &str) -> Result<PaymentId> {
    let body = json!({
        "payeeAccountId": "GB94BARC10201530093459", "amountMinor": 4_200, "currency": "GBP", "scheduledFor": date,
    });
    Ok(world.create(ACCOUNT, key, &body).await?.parse()?)
}

/// Applies these events to a scheduled payment.
pub async fn move_on(world: &World, payment_id: PaymentId, events: Vec<Event>, at: &str) -> Result<()> {
    let store = world.store().await;
    let key = store.details(payment_id).await?.context("the payment has no details")?.key();
    let mut head = store.head(&key).await?.context("the payment has no head")?;
    for event in events {
        let by = match event {
            Event::Cancel => Actor::client("landlord-app"),
            Event::Sweep => Actor::sweep(),
            Event::Settle(_) => Actor::transaction_service(),
        };
        let step = head.transition(&event, at.parse()?, by)?;
        let moved = if step.to().status().is_settled() {
            settle(&store, &key, &step).await?
        } else {
            store.transition(&key, DueSort::from_head(&head), &step).await?
        };
        head = match moved {
            Moved::Done(head) => *head,
            Moved::Elsewhere(found) => bail!("{step:?} met {found:?}"),
        };
    }
    Ok(())
}

/// Settles a payment in both tables.
async fn settle(store: &Store, key: &HeadKey, step: &Transition) -> Result<Moved> {
    let pending = store.stored_head(key).await?.context("the payment has no head")?;
    let Decided::Put(settled) = store.decide_settlement(&pending, step).await? else { bail!("it is settled already") };
    Ok(store.follow_settlement(&settled).await?)
}

/// Creates payments of Christmas 2035 as long as no calendar has it: that of pounds is another one then.
async fn before_the_holiday(world: &World) -> Result<()> {
    let mut environment = world.environment.clone();
    environment.calendars = "USD=FED".to_owned();
    let dependencies = world.dependencies_over(&world.recorder).await;
    let functions = Functions::within(&environment, |_| Ok(dependencies.clone()))?;
    for rule in ["none", "following", "preceding", "refuse"] {
        let order = json!({
            "payeeAccountId": "shop", "amountMinor": 1_999, "currency": "GBP", "scheduledFor": "2035-12-25", "dateRule": rule,
        });
        let created = world.send_to(&functions, Ask::create(ACCOUNT, rule, &order)).await?;
        ensure!(created.status == 201, "{created}");
    }
    Ok(())
}

/// Changes the counters of 15 June 2090, and finds the drift by a recount at seven the morning before.
async fn miscount(world: &World) -> Result<()> {
    let counter = [("pk".to_owned(), text("COUNTS#0")), ("sk".to_owned(), text("2090-06-15"))].into();
    world.update(&counter, "ADD PENDING :two, unparsed :one", &[(":two", number(2)), (":one", number(1))]).await?;
    world.set_clock("2090-06-14T07:00:00Z")?;
    let request = r#"{"action":"recount","from":"2090-06-15","to":"2090-06-15"}"#;
    let event = LambdaEvent::new(serde_json::from_str(request)?, context(NO_DEADLINE));
    let found = world.functions().recount.handle(event).await.map_err(anyhow::Error::msg)?;
    ensure!(found.drifted == 1, "{found:?}");
    Ok(())
}

/// Marks the account's payments of this status as reported.
async fn report_took(world: &World, status: &str) -> Result<()> {
    for head in world.heads(ACCOUNT).await? {
        if head["status"].as_s().is_ok_and(|found| found == status) {
            world.update(&head, "REMOVE unreported", &[]).await?;
        }
    }
    Ok(())
}

/// The key of a payment's head, and the head as it was created.
async fn scheduled(world: &World, payment_id: PaymentId) -> Result<(HeadKey, Head)> {
    let details = world.store().await.details(payment_id).await?.context("the payment has no details")?;
    Ok((details.key(), Head::scheduled(&details)))
}

/// Runs an HTTP event through its function.
pub async fn run(world: &World, name: &str) -> Result<Reply> {
    let event = http_event(name)?;
    let function =
        by_key(event.route_key.as_deref().unwrap_or_default()).map_or(DEFAULT_FUNCTION, |spec| spec.function);
    // Boxed: a preparation makes many requests, and they must fit on its thread's stack.
    let response = world.functions().invoke(function, event).await;
    Reply::from_response(response).with_context(|| name.to_owned())
}

/// Reads an HTTP event.
pub fn http_event(name: &str) -> Result<ApiGatewayV2httpRequest> {
    serde_json::from_str(&request_text(name)?).with_context(|| name.to_owned())
}
