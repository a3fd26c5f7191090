//! The event files, their functions, and what they find: each event runs in a world that is prepared for it, in
//! process and under the emulator.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use insta::Settings;
use lambda_runtime::LambdaEvent;
use payments_bank::Functions;
use payments_http::routes::{DEFAULT_FUNCTION, by_key};
use payments_machine::Handlers as _;
use payments_model::webhook::EndpointId;
use payments_model::{
    Actor, Event, EventFields, EventFilter, Failure, Head, HeadKey, PaymentId, Settlement, Transition,
};
use payments_store::{
    BlockingEvent, CreateEndpoint, Decided, Delivery, DeliveryEnd, DeliveryError, DueSort, EndpointChoice, LogPosition,
    LogRead, MAX_ENDPOINTS, Moved, Progress, Store, WebhookCommit,
};
use serde_json::json;

use crate::tables::{NO_DEADLINE, context, number, text};
use crate::{Ask, Reply, World};

/// How far ahead payments may be due here: the events ask for June 2090, so that they work for a long time with a
/// real clock too.
pub const HORIZON_DAYS: u32 = 25_000;

/// The account of the events.
pub const ACCOUNT: &str = "GB29NWBK60161331926819";

/// When the payments of a prepared world are created.
const CREATED_AT: &str = "2026-11-20T08:00:00Z";

/// The transaction id of the first payment that is `PROCESSED`.
const TRANSACTION: &str = "TX-20900615-1";

/// What an event finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    /// No payments.
    Nothing,
    /// The webhook endpoint of `webhooks/put`, which fails at the first of three events.
    Endpoint,
    /// As many webhook endpoints as there can be.
    Endpoints,
    /// A bank whose currencies have calendars, and no payments.
    Calendars,
    /// The same, with the payment of `ingest/create-date-rule`, which moved.
    MovedPayment,
    /// A bank whose calendar has Christmas 2035, with a payment of that date for each date rule that was created before it had.
    HolidayAnnounced,
    /// The payment of `ingest/create`, `SCHEDULED`.
    OnePayment,
    /// The same, amended as `ingest/amend` does it.
    Amended,
    /// The two payments of `ingest/batch`; the first is also `ingest/create`'s.
    TwoPayments,
    /// The same two, the first one cancelled.
    OneOfTwoCancelled,
    /// The same two, the first one pending.
    OneOfTwoPending,
    /// The same two, the first one processed, the second one pending.
    OneProcessedOnePending,
    /// The payment of `ingest/create`, pending.
    Pending,
    /// The same, redriven once.
    Redriven,
    /// The same, processed.
    Processed,
    /// The same, failed.
    Failed,
    /// Seven payments of 15 June 2090 in every status, and one of the next day.
    ADay,
    /// The same, with the `PROCESSED` one reported.
    ADayHalfReported,
    /// The same seven payments, counted.
    ADayCounted,
    /// The same, with a wrong counter that a recount found 26 hours before.
    ADayMiscounted,
}

/// Brings a world to where an event finds it, over the API as far as possible. What happened to the payments after
/// their creation happened at `moved_at`.
pub async fn prepare(world: &World, given: Given, moved_at: &str) -> Result<()> {
    world.set_clock(CREATED_AT)?;
    let pending = || vec![Event::Sweep];
    let settled = |settlement| vec![Event::Sweep, Event::Settle(settlement)];
    let processed = || anyhow::Ok(settled(Settlement::Processed(TRANSACTION.parse()?)));
    let failed = || settled(Settlement::Failed(Failure::new(Some("AC07"), "The payee's account is closed.")));
    match given {
        Given::Nothing | Given::Calendars => {}
        Given::Endpoint => failing_endpoint(world).await?,
        Given::Endpoints => {
            for n in 0..MAX_ENDPOINTS {
                endpoint(world, &format!("endpoint-{n}")).await?;
            }
        }
        Given::HolidayAnnounced => before_the_holiday(world).await?,
        Given::MovedPayment => drop(put(world, "ingest/create-date-rule").await?),
        Given::OnePayment => drop(put(world, "ingest/create").await?),
        Given::Amended => {
            put(world, "ingest/create").await?;
            world.set_clock(moved_at)?;
            put(world, "ingest/amend").await?;
        }
        Given::TwoPayments => drop(put(world, "ingest/batch").await?),
        Given::OneOfTwoCancelled => {
            put(world, "ingest/batch").await?;
            world.set_clock(moved_at)?;
            put(world, "ingest/cancel").await?;
        }
        Given::OneOfTwoPending => move_on(world, of_batch(world, 0).await?, pending(), moved_at).await?,
        Given::OneProcessedOnePending => {
            move_on(world, of_batch(world, 0).await?, processed()?, moved_at).await?;
            move_on(world, of_batch(world, 1).await?, pending(), moved_at).await?;
        }
        Given::Pending => move_on(world, created(world).await?, pending(), moved_at).await?,
        Given::Redriven => {
            let payment_id = created(world).await?;
            move_on(world, payment_id, pending(), moved_at).await?;
            let (key, _) = scheduled(world, payment_id).await?;
            ensure!(world.store().await.redrive(&key, 1, 2).await?, "it is pending");
        }
        Given::Processed => move_on(world, created(world).await?, processed()?, moved_at).await?,
        Given::Failed => move_on(world, created(world).await?, failed(), moved_at).await?,
        Given::ADay => {
            let events = [vec![], vec![], vec![], pending(), processed()?, failed(), vec![Event::Cancel]];
            a_day(world, events, moved_at).await?;
        }
        Given::ADayHalfReported => {
            Box::pin(prepare(world, Given::ADay, moved_at)).await?;
            report_took(world, "PROCESSED").await?;
        }
        Given::ADayCounted | Given::ADayMiscounted => {
            Box::pin(prepare(world, Given::ADay, moved_at)).await?;
            world.count_all().await?;
            if given == Given::ADayMiscounted {
                miscount(world).await?;
            }
        }
    }
    Ok(())
}

/// Creates a webhook endpoint, which begins at the log's beginning.
async fn endpoint(world: &World, id: &str) -> Result<EndpointId> {
    let (id, store) = (id.parse()?, world.store().await);
    let url = "https://hooks.shop.co.uk/payments".parse()?;
    let chosen = EndpointChoice { url, description: "The shop's books".to_owned(), filter: EventFilter::default() };
    let (from, at, before) = (LogPosition::BEGINNING, world.now().as_chrono(), store.endpoints_created().await?);
    let created = store.create_webhook_endpoint(&id, &chosen, from, false, at, before).await?;
    ensure!(created == CreateEndpoint::Created, "it is there");
    Ok(id)
}

/// Creates a webhook endpoint that did not accept the first of three events.
async fn failing_endpoint(world: &World) -> Result<()> {
    put(world, "ingest/batch").await?;
    put(world, "ingest/cancel").await?;
    world.count_all().await?;
    let (id, store, now) = (endpoint(world, "shop").await?, world.store().await, world.now());
    let head = store.log_head().await?.context("no log")?;
    let start = head.start(now);
    ensure!(store.replay_webhook(&id, start).await?, "it is there");
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
    progress.remember(Delivery { at: now, message_id, events: 1, bodies: 1, outcome });
    let commit = WebhookCommit { to: start, progress: &progress, lease_until: None, disabled: None };
    ensure!(store.commit_webhook(&id, &taken, &commit).await?.is_some(), "it is ours");
    Ok(())
}

/// Creates payments of 15 June 2090, applies its events to each, and creates one of the next day.
async fn a_day(world: &World, events: [Vec<Event>; 7], moved_at: &str) -> Result<()> {
    for (n, events) in events.into_iter().enumerate() {
        let payment_id = ask(world, &format!("bill-{n}"), "2090-06-15").await?;
        move_on(world, payment_id, events, moved_at).await?;
    }
    ask(world, "bill-7", "2090-06-16").await?;
    Ok(())
}

/// Runs an HTTP event that must succeed.
async fn put(world: &World, name: &str) -> Result<Reply> {
    let reply = run(world, name).await?;
    ensure!(reply.status < 300, "{reply}");
    Ok(reply)
}

/// The payment of `ingest/create`.
async fn created(world: &World) -> Result<PaymentId> {
    Ok(put(world, "ingest/create").await?.field("paymentId").parse()?)
}

/// The id of one payment of `ingest/batch`, which may exist already.
async fn of_batch(world: &World, position: usize) -> Result<PaymentId> {
    let reply = put(world, "ingest/batch").await?;
    let payment_id = reply.body["results"][position]["payment"]["paymentId"].as_str();
    Ok(payment_id.context("the batch was rejected")?.parse()?)
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
            store.transition(&key, DueSort::of(&head), &step).await?
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
    let Decided::Now(settled) = store.decide_settlement(&pending, step).await? else { bail!("it is settled already") };
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

/// Changes the counters of 15 June 2090, and lets a recount find it at seven the morning before.
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
pub async fn report_took(world: &World, status: &str) -> Result<()> {
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
    Reply::of(response).with_context(|| name.to_owned())
}

/// Reads an HTTP event.
pub fn http_event(name: &str) -> Result<ApiGatewayV2httpRequest> {
    serde_json::from_str(&event_text(name)?).with_context(|| name.to_owned())
}

/// Reads the text of an event's file.
pub fn event_text(name: &str) -> Result<String> {
    let path = in_repository("../events").join(format!("{name}.json"));
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// The names of all events: `<function>/<case>`.
pub fn events() -> Result<BTreeSet<String>> {
    names("../events", ".json")
}

/// The names of the events whose answers are stored.
pub fn answers() -> Result<BTreeSet<String>> {
    names("journeys/snapshots", ".snap")
}

/// Reads the answer in an event's snapshot.
pub fn answer(name: &str) -> Result<String> {
    let path = in_repository("journeys/snapshots").join(format!("{name}.snap"));
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    // insta's metadata stands between two lines of dashes.
    let answer = text.splitn(3, "---\n").nth(2).with_context(|| format!("{name} has no answer"))?;
    Ok(answer.trim_end().to_owned())
}

/// The settings of an event's snapshot, and its name. Snapshots lie in folders as events do.
pub fn snapshot_of(name: &str, given: Given) -> (Settings, &str) {
    let (function, case) = name.split_once('/').unwrap_or_default();
    let mut settings = Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path(format!("snapshots/{function}"));
    settings.set_description(format!("events/{name}.json, which finds: {given:?}"));
    (settings, case)
}

/// The package of the function that an event is for.
pub fn function_of(name: &str) -> &str {
    name.split_once('/').map_or(name, |(function, _)| function)
}

/// The names of the files in the folders of a folder, as `<folder>/<file>` without the ending.
fn names(root: &str, ending: &str) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for folder in fs::read_dir(in_repository(root)).with_context(|| root.to_owned())? {
        let folder = folder?;
        if !folder.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(folder.path())? {
            let file = format!("{}/{}", folder.file_name().display(), file?.file_name().display());
            names.extend(file.strip_suffix(ending).map(str::to_owned));
        }
    }
    ensure!(!names.is_empty(), "{root} has no */*{ending}");
    Ok(names)
}

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// What an event finds by this table, and whether the table names it.
pub fn given(table: &[(Given, &[&str])], name: &str) -> (Given, bool) {
    let row = table.iter().find(|(_, names)| names.contains(&name));
    row.map_or((Given::Nothing, false), |(given, _)| (*given, true))
}

/// Asserts that a table names existing events only, and each once.
pub fn assert_names_events(table: &[(Given, &[&str])], events: &BTreeSet<String>) {
    let stated: Vec<&str> = table.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    for (at, name) in stated.iter().enumerate() {
        assert!(events.contains(*name), "GIVEN names {name}, which is no event");
        assert!(!stated[..at].contains(name), "GIVEN names {name} twice");
    }
}
