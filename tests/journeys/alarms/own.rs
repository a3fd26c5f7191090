//! Faults that show in the functions' own metrics: each function runs under its fault, and emits what it emits.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;
use daily_due_sweeper::Action;
use futures::TryStreamExt as _;
use http::Method;
use lambda_runtime::LambdaEvent;
use object_store::ObjectStoreExt as _;
use payments_alarms::Sample;
use payments_bank::Dependencies;
use payments_model::EventFilter;
use payments_model::webhook::EndpointUrl;
use payments_store::{EndpointChoice, Item};
use payments_tests::event_files::event_text;
use payments_tests::given::ACCOUNT;
use payments_tests::tables::{NO_DEADLINE, context, number, text};
use payments_tests::trigger_events::{delivered, found_by, now_of, world_of};
use payments_tests::{Ask, Bus, Reaction, Receivers, World};
use serde_json::{Value, json};

use super::day::{Day, ids};
use super::fault::Fault;
use crate::triggers::run;

/// How many hours into the day a fault shows.
const SHOWS: i64 = 11;

/// All of them.
pub(super) async fn faults(day: &Day) -> Result<Vec<Fault>> {
    let (sweeper, ids) = ("daily-due-sweeper", ids()?);
    let mut faults = Vec::new();
    for (what, function, alarms, lines) in [
        ("a sweep ten hours after the due time", sweeper, ["PaymentsOverdue"], event("daily-due-sweeper/sweep").await?),
        ("a damaged index entry", sweeper, ["SweepFailures"], Box::pin(damaged_entry()).await?),
        ("a payment that stays pending", sweeper, ["PaymentsStuckPending"], Box::pin(stuck()).await?),
        ("a damaged pending head", sweeper, ["RedriveFailures"], Box::pin(damaged_pending()).await?),
        ("a head unlike its details", "dispatch", ["DisagreeingPayments"], Box::pin(disagreeing()).await?),
        ("two results", "settle", ["ConflictingResults"], event("settle/conflicting").await?),
        (
            "a result after a cancel",
            "settle",
            ["CancelledPaymentsProcessed"],
            event("settle/processed-after-cancel").await?,
        ),
        ("a result of another amount", "settle", ["ResultsOfOtherTransfers"], event("settle/other-amount").await?),
        ("a shared id", "settle", ["SharedTransactionIds"], event("settle/shared-transaction-id").await?),
        ("an unknown payment", "settle", ["UnknownPayments"], event("settle/unknown-payment").await?),
        (
            "a head that no list can read",
            "query-account",
            ["PaymentsUnreadable"],
            unreadable(&format!("/accounts/{ACCOUNT}/payments?from=2090-06-15")).await?,
        ),
        (
            "an entry that no list can read",
            "query-due",
            ["PaymentsUnreadable"],
            unreadable("/payments?dueDate=2090-06-15").await?,
        ),
        ("wrong counters", "recount", ["CountsDrifted"], event("recount/recount-dates").await?),
        ("a calendar that ends soon", "recount", ["CalendarEnds"], calendar_ends().await?),
        ("a recount without time", "recount", ["RecountUnfinished"], Box::pin(recounted(false, true)).await?),
        ("an entry that cannot be counted", "recount", ["DatesUnreadable"], Box::pin(recounted(true, false)).await?),
        ("payments that refuse another date", "redate", ["LeftOnClosedDate"], Box::pin(left()).await?),
        ("a move without time", "redate", ["RedateUnfinished"], Box::pin(redated_late()).await?),
        ("a damaged settled head", "report", ["ReportFailures"], Box::pin(damaged_settled()).await?),
        ("a file that is gone", "report", ["ReportFileAltered"], Box::pin(file_gone()).await?),
        ("a report after nine hours", "report", ["ReportsLate"], event("report/report").await?),
        ("a journal of a log that was lost", "publish", ["JournalMissed"], Box::pin(journal_of_lost_log()).await?),
        ("an endpoint that is gone", "publish", ["WebhookDisabled"], Box::pin(endpoint("1.1.0", 410)).await?),
        ("an endpoint of a log that was lost", "publish", ["WebhooksMissed"], Box::pin(endpoint("7.3.0", 200)).await?),
        ("an endpoint that is changed", "webhooks", ["WebhookEndpointsChanged"], Box::pin(endpoint_changed()).await?),
        ("a bus of a log that was lost", "publish", ["BusMissed"], Box::pin(bus_of_lost_log()).await?),
        ("settlements in no report", "archive", ["ArchiveOverdue"], Box::pin(never_reported()).await?),
    ] {
        faults.push(of_lines(day, what, ids.function(function)?, &alarms, &lines)?);
    }
    // One of the payments has the rule refuse.
    let announced = event("redate/look").await?;
    let (what, alarms) = ("a holiday that was announced", ["WaitingForRedate", "LeftOnClosedDate"]);
    faults.push(of_lines(day, what, ids.function("redate")?, &alarms, &announced)?);
    let (aggregator, irregular) = (ids.function("stream-aggregator")?, "ChangesIrregular");
    for (what, alarms, (pointer, value)) in [
        ("a damaged image", &["ChangesUnparsed", irregular][..], ("/NewImage/amountMinor/N", json!("0.5"))),
        ("a version that follows none", &[irregular], ("/NewImage/version/N", json!("7"))),
        ("a record of an earlier day", &["EventsMissing"], ("/ApproximateCreationDateTime", json!(1_796_115_600))),
    ] {
        let lines = Box::pin(counted(pointer, value)).await?;
        faults.push(of_lines(day, what, aggregator, alarms, &lines)?);
    }
    // Each with the hour of its run.
    let runs = Box::pin(unfinished_redrives()).await?;
    let sweeper = ids.function(sweeper)?;
    faults.push(of_lines(day, "three redrives without time", sweeper, &["RedriveUnfinished"], &runs)?);
    faults.push(of_lines(day, "two redrives without time", sweeper, &[], &runs[1..])?);
    faults.extend(Box::pin(super::publish::faults(day)).await?);
    Ok(faults)
}

/// Creates a fault of the lines that a function emits, one an hour.
fn of_lines(day: &Day, what: &str, id: &str, alarms: &[&'static str], lines: &[String]) -> Result<Fault> {
    let (mut samples, mut at) = (Vec::new(), day.begin + TimeDelta::hours(SHOWS));
    for line in lines {
        for mut sample in Sample::of_line(line).with_context(|| what.to_owned())? {
            sample.metric.dimensions.insert("Function".to_owned(), id.to_owned());
            samples.push(Sample { at, ..sample });
        }
        at += TimeDelta::hours(1);
    }
    Ok(Fault { what: what.to_owned(), alarms: alarms.to_vec(), silent: Vec::new(), samples })
}

/// The lines of an event's function.
async fn event(name: &str) -> Result<Vec<String>> {
    let world = Box::pin(world_of(found_by(name))).await?;
    world.set_clock(now_of(name))?;
    Box::pin(run(&world, name)).await?;
    Ok(world.outside.metrics.take())
}

/// The only head of the account with this status.
async fn head(world: &World, status: &str) -> Result<Item> {
    let heads = world.heads(ACCOUNT).await?.into_iter();
    let mut of_status = heads.filter(|head| head["status"].as_s().is_ok_and(|found| found == status));
    of_status.next().with_context(|| format!("no head is {status}"))
}

/// Runs the sweeper at an instant.
async fn sweeper(world: &World, action: Action, now: &str) -> Result<Vec<String>> {
    sweeper_until(world, action, now, NO_DEADLINE).await
}

async fn sweeper_until(world: &World, action: Action, now: &str, deadline: u64) -> Result<Vec<String>> {
    world.set_clock(now)?;
    let request = daily_due_sweeper::Request { action };
    let done = world.functions().sweeper.handle(LambdaEvent::new(request, context(deadline))).await;
    done.map_err(anyhow::Error::from_boxed)?;
    Ok(world.outside.metrics.take())
}

async fn damaged_entry() -> Result<Vec<String>> {
    let world = world_of(&["ingest/create"]).await?;
    world.update(&head(&world, "SCHEDULED").await?, "SET amountMinor = :zero", &[(":zero", number(0))]).await?;
    sweeper(&world, Action::Sweep, "2090-06-15T00:05:00Z").await
}

async fn stuck() -> Result<Vec<String>> {
    let world = world_of(&["ingest/create", "claimed"]).await?;
    world.update(&head(&world, "PENDING").await?, "SET dispatchAttempt = :eight", &[(":eight", number(8))]).await?;
    sweeper(&world, Action::Redrive, "2090-06-27T00:05:00Z").await
}

async fn damaged_pending() -> Result<Vec<String>> {
    let world = world_of(&["ingest/create", "claimed"]).await?;
    let none = AttributeValue::L(Vec::new());
    world.update(&head(&world, "PENDING").await?, "SET trail = :none", &[(":none", none)]).await?;
    sweeper(&world, Action::Redrive, "2090-06-15T01:10:00Z").await
}

async fn unfinished_redrives() -> Result<Vec<String>> {
    let world = world_of(&["ingest/create", "claimed"]).await?;
    let mut lines = Vec::new();
    for now in ["2090-06-15T01:10:00Z", "2090-06-15T02:10:00Z", "2090-06-15T03:10:00Z"] {
        lines.extend(sweeper_until(&world, Action::Redrive, now, 0).await?);
    }
    Ok(lines)
}

async fn disagreeing() -> Result<Vec<String>> {
    let name = "dispatch/became-pending";
    let world = world_of(found_by(name)).await?;
    let event = delivered(&world, name)?;
    world.update(&head(&world, "PENDING").await?, "SET amountMinor = :one", &[(":one", number(1))]).await?;
    let dispatched = world.functions().dispatch.handle(serde_json::from_str(&event)?).await;
    dispatched.map_err(anyhow::Error::msg)?;
    Ok(world.outside.metrics.take())
}

/// Lists a payment that cannot be read.
async fn unreadable(list: &str) -> Result<Vec<String>> {
    let world = world_of(&["ingest/create"]).await?;
    world.update(&head(&world, "SCHEDULED").await?, "SET amountMinor = :zero", &[(":zero", number(0))]).await?;
    world.send(Ask::get(list)).await?;
    Ok(world.outside.metrics.take())
}

/// Counts a change whose record has another value.
async fn counted(pointer: &str, value: Value) -> Result<Vec<String>> {
    let name = "stream-aggregator/became-pending";
    let world = world_of(found_by(name)).await?;
    let mut event: Value = serde_json::from_str(&delivered(&world, name)?)?;
    let place = format!("/Records/0/dynamodb{pointer}");
    *event.pointer_mut(&place).with_context(|| format!("no {place}"))? = value;
    let event = LambdaEvent::new(serde_json::from_value(event)?, context(NO_DEADLINE));
    let counted = world.functions().aggregator.handle(event).await;
    counted.map_err(anyhow::Error::msg)?;
    Ok(world.outside.metrics.take())
}

/// Recounts the day, with a damaged entry, or without time.
async fn recounted(damaged: bool, late: bool) -> Result<Vec<String>> {
    let world = world_of(&["a-day", "counted"]).await?;
    if damaged {
        world.update(&head(&world, "PENDING").await?, "SET amountMinor = :zero", &[(":zero", number(0))]).await?;
    }
    let request = serde_json::from_value(json!({ "action": "recount", "from": "2090-06-15", "to": "2090-06-15" }))?;
    let deadline = if late { 0 } else { NO_DEADLINE };
    let done = world.functions().recount.handle(LambdaEvent::new(request, context(deadline))).await;
    done.map_err(anyhow::Error::msg)?;
    Ok(world.outside.metrics.take())
}

/// Looks at a holiday off which all payments were moved that can be.
async fn left() -> Result<Vec<String>> {
    let world = world_of(&["holiday-announced"]).await?;
    world.set_clock(now_of("redate/look"))?;
    for name in ["redate/move", "redate/look"] {
        drop(world.outside.metrics.take());
        Box::pin(run(&world, name)).await?;
    }
    Ok(world.outside.metrics.take())
}

/// Moves payments of a holiday, without time.
async fn redated_late() -> Result<Vec<String>> {
    let world = world_of(&["holiday-announced"]).await?;
    world.set_clock(now_of("redate/move"))?;
    let request = serde_json::from_str(&event_text("redate/move")?)?;
    let done = world.functions().redate.handle(LambdaEvent::new(request, context(0))).await;
    assert_eq!(done.map_err(anyhow::Error::msg)?.moved, 0);
    Ok(world.outside.metrics.take())
}

/// Recounts a day without payments, two and a half years before the end of the calendars.
async fn calendar_ends() -> Result<Vec<String>> {
    let world = World::with(|environment| environment.calendars = "EUR=T2,USD=FED".to_owned()).await?;
    world.set_clock("2033-07-04T00:30:00Z")?;
    let request = serde_json::from_value(json!({ "action": "recount", "from": "2033-07-04", "to": "2033-07-04" }))?;
    let done = world.functions().recount.handle(LambdaEvent::new(request, context(NO_DEADLINE))).await;
    assert_eq!(done.map_err(anyhow::Error::msg)?.calendar_days_short, Some(1));
    Ok(world.outside.metrics.take())
}

/// Runs a report an hour after the settlements.
async fn report(world: &World) -> Result<Result<(), String>> {
    world.set_clock("2090-06-15T01:00:00Z")?;
    let request = serde_json::from_value(json!({ "action": "report" }))?;
    let done = world.functions().report.handle(LambdaEvent::new(request, context(NO_DEADLINE))).await;
    Ok(done.map(drop).map_err(|error| error.to_string()))
}

async fn damaged_settled() -> Result<Vec<String>> {
    let world = world_of(&["a-day"]).await?;
    let none = AttributeValue::L(Vec::new());
    world.update(&head(&world, "PROCESSED").await?, "SET trail = :none", &[(":none", none)]).await?;
    report(&world).await?.map_err(anyhow::Error::msg)?;
    Ok(world.outside.metrics.take())
}

/// A run that was committed and not finished, and whose files are gone.
async fn file_gone() -> Result<Vec<String>> {
    let world = world_of(&["a-day"]).await?;
    report(&world).await?.map_err(anyhow::Error::msg)?;
    let job = [("pk".to_owned(), text("CHECKPOINT#report")), ("sk".to_owned(), text("job"))].into();
    world.update(&job, "SET finished = :no", &[(":no", AttributeValue::Bool(false))]).await?;
    let files: Vec<_> = world.outside.reports.list(None).map_ok(|file| file.location).try_collect().await?;
    for file in files {
        world.outside.reports.delete(&file).await?;
    }
    drop(world.outside.metrics.take());
    report(&world).await?.err().context("it goes on without the file")?;
    Ok(world.outside.metrics.take())
}

/// The journal is at a place of a log that is gone.
async fn journal_of_lost_log() -> Result<Vec<String>> {
    let world = world_of(&["a-day", "counted"]).await?;
    world.store().await.move_log_consumer("journal", None, "7.3.0".parse()?).await?;
    let request = serde_json::from_value(json!({ "action": "publish" }))?;
    let done = world.functions().publish.handle(LambdaEvent::new(request, context(NO_DEADLINE))).await;
    done.map_err(anyhow::Error::from_boxed)?;
    Ok(world.outside.metrics.take())
}

/// The event bus is at a place of a log that is gone.
async fn bus_of_lost_log() -> Result<Vec<String>> {
    let world = world_of(&["a-day", "counted"]).await?;
    world.store().await.move_log_consumer(Bus::CONSUMER, None, "7.3.0".parse()?).await?;
    let request = serde_json::from_value(json!({ "action": "publish" }))?;
    let publish = world.functions().publish.clone().with_bus(Some(Arc::new(Bus::default())));
    let done = publish.handle(LambdaEvent::new(request, context(NO_DEADLINE))).await;
    done.map_err(anyhow::Error::from_boxed)?;
    Ok(world.outside.metrics.take())
}

/// What is emitted for a webhook endpoint at a place, which answers with a status.
async fn endpoint(from: &str, status: u16) -> Result<Vec<String>> {
    let (world, receivers) = (world_of(&["a-day", "counted"]).await?, Receivers::default());
    receivers.react(7001, move |_| Reaction::Status(status));
    let url = EndpointUrl::loopback("http://127.0.0.1:7001/hook")?;
    let chosen = EndpointChoice { url, description: String::new(), filter: EventFilter::default() };
    let store = world.store().await;
    store
        .create_webhook_endpoint(
            &"shop".parse()?,
            &chosen,
            from.parse()?,
            false,
            world.now().as_chrono(),
            store.endpoints_created().await?,
        )
        .await?;
    // When the log was written.
    world.set_clock("2026-11-20T09:00:00Z")?;
    let dependencies = Dependencies { webhooks: receivers.webhooks()?, ..world.dependencies(world.client().await) };
    let request = serde_json::from_value(json!({ "action": "publish" }))?;
    let functions = world.functions_in(&dependencies)?;
    let done = functions.publish.handle(LambdaEvent::new(request, context(NO_DEADLINE))).await;
    done.map_err(anyhow::Error::from_boxed)?;
    Ok(world.outside.metrics.take())
}

/// Creates an endpoint. A test, and a repeated PUT, change none.
async fn endpoint_changed() -> Result<Vec<String>> {
    let world = World::open().await?;
    let put = || Ask::new(Method::PUT, "/webhook-endpoints/shop").json(&json!({ "url": "https://hooks.shop.co.uk/" }));
    world.send(put()).await?;
    let lines = world.outside.metrics.take();
    world.send(put()).await?;
    world.send(Ask::post("/webhook-endpoints/shop/test")).await?;
    anyhow::ensure!(world.outside.metrics.take().is_empty(), "nothing was changed");
    Ok(lines)
}

async fn never_reported() -> Result<Vec<String>> {
    let world = world_of(&["a-day"]).await?;
    world.set_clock("2090-06-21T02:30:00Z")?;
    let request = serde_json::from_value(json!({ "action": "archive" }))?;
    let done = world.functions().archive.handle(LambdaEvent::new(request, context(NO_DEADLINE))).await;
    done.map_err(anyhow::Error::from_boxed)?;
    Ok(world.outside.metrics.take())
}
