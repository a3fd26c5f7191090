//! Faults that show in the functions' own metrics: each function runs under its fault and emits its metrics.

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;
use futures::TryStreamExt as _;
use http::Method;
use object_store::ObjectStoreExt as _;
use payments_alarms::Sample;
use payments_machine::Handlers as _;
use payments_machine::given::{stop, turn_switch};
use payments_model::{BusinessDate, Hold, Switch, SwitchChange};
use payments_tests::events::files::function_of;
use payments_tests::events::triggers::{delivered, found_by, now_of, world_of};
use payments_tests::given::ACCOUNT;
use payments_tests::prelude::*;
use payments_tests::{Bus, Reaction, Receivers};

use super::day::Day;
use super::fault::{Fault, samples_of};
use super::publish::create_endpoint;
use crate::triggers::run;

/// The hour of the day in which a fault shows.
const SHOWS: i64 = 11;

/// Damages of heads.
const NO_AMOUNT: &str = "SET amountMinor = :value";
const NO_TRAIL: &str = "SET trail = :value";

/// The functions that schedules start, with their inputs.
const SWEEP: (&str, &str) = ("daily-due-sweeper", r#"{"action":"sweep"}"#);
const REDRIVE: (&str, &str) = ("daily-due-sweeper", r#"{"action":"redrive"}"#);
const REPORT: (&str, &str) = ("report", r#"{"action":"report"}"#);
const RECOUNT: (&str, &str) = ("recount", r#"{"action":"recount","from":"2090-06-15","to":"2090-06-15"}"#);
const ARCHIVE: (&str, &str) = ("archive", r#"{"action":"archive"}"#);
const MOVE: (&str, &str) = ("redate", r#"{"action":"move","calendar":"GB","from":"2035-12-24","to":"2035-12-28"}"#);

const TICKET: (&str, &str) =
    ("redate", r#"{"action":"move","calendar":"GB","from":"2035-12-24","to":"2035-12-28","ticket":"INC-4711"}"#);

/// The times at which functions run, from the day of the payments on.
const ONE: &str = "2090-06-15T01:10:00Z";
const MORNING: &str = "2026-11-20T09:00:00Z";
const SIX_DAYS_LATER: &str = "2090-06-21T02:30:00Z";

/// The steps before faults of one payment, and of a day.
const CREATED: &[&str] = &["ingest/create"];
const LIMITED: &[&str] = &["day-limit", "ingest/create"];
const EXPECTED: &[&str] = &["feed-expected", "ingest/create"];
const CLAIMED: &[&str] = &["ingest/create", "claimed"];
const DAY: &[&str] = &["a-day"];
const COUNTED: &[&str] = &["a-day", "counted"];

/// All of them.
pub(super) async fn faults(day: &Day) -> Result<Vec<Fault>> {
    let mut faults = Vec::new();
    for (what, name, alarms) in [
        ("a sweep ten hours after the due time", "daily-due-sweeper/sweep", &["PaymentsOverdue"][..]),
        ("two results", "settle/conflicting", &["ConflictingResults"]),
        ("a result after a cancel", "settle/processed-after-cancel", &["CancelledPaymentsProcessed"]),
        ("a result of another amount", "settle/other-amount", &["ResultsOfOtherTransfers"]),
        ("a shared id", "settle/shared-transaction-id", &["SharedTransactionIds"]),
        ("an unknown payment", "settle/unknown-payment", &["UnknownPayments"]),
        ("wrong counters", "recount/recount-dates", &["CountsDrifted"]),
        ("a repair with a ticket", "recount/repair", &["FourEyesBypassed"]),
        ("a report after nine hours", "report/report", &["ReportsLate"]),
        // One of the payments has the rule refuse.
        ("a holiday that was announced", "redate/look", &["WaitingForRedate", "LeftOnClosedDate"]),
    ] {
        faults.push(of_lines(day, what, function_of(name), alarms, &event(name).await?)?);
    }
    faults.extend(faults_of_runs(day).await?);
    for (what, function, alarm, lines) in [
        ("a head that no list can read", "query-account", "PaymentsUnreadable", unreadable(&account_list()).await?),
        ("an entry that no list can read", "query-due", "PaymentsUnreadable", unreadable(DATE_LIST).await?),
        ("a head unlike its details", "dispatch", "DisagreeingPayments", disagreeing().await?),
        ("a calendar that ends soon", "recount", "CalendarEnds", calendar_ends().await?),
        ("payments that refuse another date", "redate", "LeftOnClosedDate", left().await?),
        ("a file that is gone", "report", "ReportFileAltered", file_gone().await?),
        ("a journal of a log that was lost", "publish", "JournalMissed", of_lost_log("journal").await?),
        ("a bus of a log that was lost", "publish", "BusMissed", of_lost_log(Bus::CONSUMER).await?),
        ("an endpoint that is gone", "publish", "WebhookDisabled", endpoint("1.1.0", 410).await?),
        ("an endpoint of a log that was lost", "publish", "WebhooksMissed", endpoint("7.3.0", 200).await?),
        ("an endpoint that is changed", "webhooks", "WebhookEndpointsChanged", endpoint_changed().await?),
        ("an endpoint that is enabled", "console", "WebhookEndpointsChanged", endpoint_enabled().await?),
    ] {
        faults.push(of_lines(day, what, function, &[alarm], &lines)?);
    }
    for (what, alarms, pointer, value) in [
        ("a damaged image", &["ChangesUnparsed", "ChangesIrregular"][..], "/NewImage/amountMinor/N", json!("0.5")),
        ("a version that follows none", &["ChangesIrregular"], "/NewImage/version/N", json!("7")),
        ("a record of an earlier day", &["EventsMissing"], "/ApproximateCreationDateTime", json!(1_796_115_600)),
    ] {
        let lines = changed(pointer, value).await?;
        faults.push(of_lines(day, what, "stream-aggregator", alarms, &lines)?);
    }
    let lines = undo_of_a_damaged_head().await?;
    let alarms = &["UndoUnfinished", "FourEyesBypassed"];
    faults.push(of_lines(day, "an undo of a damaged head, with a ticket", "undo", alarms, &lines)?);
    // Each with the hour of its run.
    let (world, mut runs) = (world_of(CLAIMED).await?, Vec::new());
    for now in [ONE, "2090-06-15T02:10:00Z", "2090-06-15T03:10:00Z"] {
        runs.extend(ran(&world, now, REDRIVE, 0).await?);
    }
    let sweeper = "daily-due-sweeper";
    let alarms = &["StillHeld", "DayHeld"];
    faults.push(of_lines(day, "two dates beyond their limits", "daily-due-sweeper", alarms, &two_dates_held().await?)?);
    let held = switched("2090-06-14T12:00:00Z", hold).await?;
    turn_switch(&held.store().await, "2090-06-15T00:10:00Z".parse()?, hold).await?;
    let (lines, alarms) = (ran(&held, ONE, SWEEP, NO_DEADLINE).await?, &["StillHeld", "HeldForLong"]);
    faults.push(of_lines(day, "two holds for an hour", "daily-due-sweeper", alarms, &lines)?);
    faults.push(of_lines(day, "three redrives without time", sweeper, &["RedriveUnfinished"], &runs)?);
    faults.push(of_lines(day, "two redrives without time", sweeper, &[], &runs[1..])?);
    faults.extend(super::publish::faults(day).await?);
    Ok(faults)
}

/// The faults of one run on a schedule.
async fn faults_of_runs(day: &Day) -> Result<Vec<Fault>> {
    let mut faults = Vec::new();
    let none = || AttributeValue::L(Vec::new());
    let entry = damaged(CREATED, "SCHEDULED", NO_AMOUNT, number(0)).await?;
    let stuck = damaged(CLAIMED, "PENDING", "SET dispatchAttempt = :value", number(8)).await?;
    let pending = damaged(CLAIMED, "PENDING", NO_TRAIL, none()).await?;
    let counted = damaged(COUNTED, "PENDING", NO_AMOUNT, number(0)).await?;
    let settled = damaged(DAY, "PROCESSED", NO_TRAIL, none()).await?;
    for (what, alarm, world, now, run, deadline) in [
        ("a damaged index entry", "SweepFailures", entry, ONE, SWEEP, NO_DEADLINE),
        ("a stop", "PaymentsStopped", switched(ONE, stop).await?, ONE, SWEEP, NO_DEADLINE),
        (
            "a hold since yesterday",
            "HeldForLong",
            switched("2090-06-14T12:00:00Z", hold).await?,
            ONE,
            SWEEP,
            NO_DEADLINE,
        ),
        ("a date beyond its limit", "DayHeld", world_of(LIMITED).await?, ONE, SWEEP, NO_DEADLINE),
        ("a day without its feed", "FeedMissing", world_of(EXPECTED).await?, MORNING, SWEEP, NO_DEADLINE),
        ("a damaged switch", "SwitchUnreadable", unreadable_switch().await?, ONE, SWEEP, NO_DEADLINE),
        ("a payment that stays pending", "PaymentsStuckPending", stuck, "2090-06-27T00:05:00Z", REDRIVE, NO_DEADLINE),
        ("a damaged pending head", "RedriveFailures", pending, ONE, REDRIVE, NO_DEADLINE),
        ("a recount without time", "RecountUnfinished", world_of(COUNTED).await?, ONE, RECOUNT, 0),
        ("an entry that cannot be counted", "DatesUnreadable", counted, ONE, RECOUNT, NO_DEADLINE),
        ("a move without time", "RedateUnfinished", announced().await?, now_of("redate/move"), MOVE, 0),
        ("a move with a ticket", "FourEyesBypassed", announced().await?, now_of("redate/move"), TICKET, NO_DEADLINE),
        ("a damaged settled head", "ReportFailures", settled, ONE, REPORT, NO_DEADLINE),
        ("settlements in no report", "ArchiveOverdue", world_of(DAY).await?, SIX_DAYS_LATER, ARCHIVE, NO_DEADLINE),
    ] {
        let lines = ran(&world, now, run, deadline).await.context(what)?;
        faults.push(of_lines(day, what, run.0, &[alarm], &lines)?);
    }
    Ok(faults)
}

/// Creates a fault of the lines that a function emits, one an hour.
fn of_lines(day: &Day, what: &str, function: &str, alarms: &[&'static str], lines: &[String]) -> Result<Fault> {
    let (mut samples, mut at) = (Vec::new(), day.begin + TimeDelta::hours(SHOWS));
    for line in lines {
        samples.extend(samples_of(line, function)?.into_iter().map(|sample| Sample { at, ..sample }));
        at += TimeDelta::hours(1);
    }
    ensure!(!samples.is_empty(), "{what} is not measured");
    Ok(Fault { what: what.to_owned(), alarms: alarms.to_vec(), silent: Vec::new(), samples })
}

/// The lines of an event's function.
async fn event(name: &str) -> Result<Vec<String>> {
    let world = world_of(found_by(name)).await?;
    world.set_clock(now_of(name))?;
    Box::pin(run(&world, name)).await?;
    Ok(world.outside.metrics.take())
}

/// The lines of a run that a schedule starts.
async fn ran(world: &World, now: &str, (function, input): (&'static str, &str), deadline: u64) -> Result<Vec<String>> {
    world.set_clock(now)?;
    drop(world.outside.metrics.take());
    let input = serde_json::from_str(input)?;
    let done = world.functions().scheduled(function, input, context(deadline)).await;
    done.map_err(anyhow::Error::msg)?;
    Ok(world.outside.metrics.take())
}

/// A world after these steps, in which the only head of this status is damaged.
async fn damaged(steps: &[&str], status: &str, damage: &str, value: AttributeValue) -> Result<World> {
    let world = world_of(steps).await?;
    let is_it = |head: &Item| head["status"].as_s().is_ok_and(|found| found == status);
    let head = world.heads(ACCOUNT).await?.into_iter().find(is_it).with_context(|| format!("no head is {status}"))?;
    world.update(&head, damage, &[(":value", value)]).await?;
    Ok(world)
}

/// A world whose switch was turned at this time.
async fn switched(at: &str, turn: impl FnOnce(&mut Switch, SwitchChange)) -> Result<World> {
    let world = World::open().await?;
    turn_switch(&world.store().await, at.parse()?, turn).await?;
    Ok(world)
}

fn hold(switch: &mut Switch, change: SwitchChange) {
    switch.holds.push(Hold { from: BusinessDate::MIN, to: BusinessDate::MIN, change });
}

/// The lines of the second sweep, before which the second of two dates gets a payment.
async fn two_dates_held() -> Result<Vec<String>> {
    let world = world_of(LIMITED).await?;
    ran(&world, ONE, SWEEP, NO_DEADLINE).await?;
    world.create("tenant", "second", &order("2090-06-16")).await?;
    ran(&world, "2090-06-16T00:10:00Z", SWEEP, NO_DEADLINE).await
}

async fn unreadable_switch() -> Result<World> {
    let world = World::open().await?;
    let damaged = item([("pk", text("CONTROL")), ("sk", text("SWITCH")), ("stopped", text("no"))]);
    world.put_items(&world.environment.tables.history, [damaged]).await?;
    Ok(world)
}

async fn announced() -> Result<World> {
    world_of(found_by("redate/move")).await
}

async fn disagreeing() -> Result<Vec<String>> {
    let name = "dispatch/became-pending";
    let world = damaged(found_by(name), "PENDING", NO_AMOUNT, number(1)).await?;
    run(&world, name).await?;
    Ok(world.outside.metrics.take())
}

/// The list of a date, and that of the account.
const DATE_LIST: &str = "/payments?dueDate=2090-06-15";

fn account_list() -> String {
    format!("/accounts/{ACCOUNT}/payments?from=2090-06-15")
}

/// Lists a payment that cannot be read.
async fn unreadable(list: &str) -> Result<Vec<String>> {
    let world = damaged(CREATED, "SCHEDULED", NO_AMOUNT, number(0)).await?;
    world.get(list).await?;
    Ok(world.outside.metrics.take())
}

/// Counts a change whose record has another value.
async fn changed(pointer: &str, value: Value) -> Result<Vec<String>> {
    let name = "stream-aggregator/became-pending";
    let world = world_of(found_by(name)).await?;
    let mut event: Value = serde_json::from_str(&delivered(&world, name)?)?;
    let place = format!("/Records/0/dynamodb{pointer}");
    *event.pointer_mut(&place).with_context(|| format!("no {place}"))? = value;
    let counted = world.functions().deliver("stream-aggregator", event).await;
    counted.map_err(anyhow::Error::msg)?;
    Ok(world.outside.metrics.take())
}

/// Looks at a holiday off which all payments were moved that can be.
async fn left() -> Result<Vec<String>> {
    let world = announced().await?;
    ran(&world, now_of("redate/move"), MOVE, NO_DEADLINE).await?;
    run(&world, "redate/look").await?;
    Ok(world.outside.metrics.take())
}

/// Recounts a day without payments, two and a half years before the end of the calendars.
async fn calendar_ends() -> Result<Vec<String>> {
    let world = World::with(|environment| environment.calendars = "EUR=T2,USD=FED".to_owned()).await?;
    let recount = ("recount", r#"{"action":"recount","from":"2033-07-04","to":"2033-07-04"}"#);
    let lines = ran(&world, "2033-07-04T00:30:00Z", recount, NO_DEADLINE).await?;
    assert_has(&serde_json::from_str(&lines[0])?, &json!({ "CalendarDaysShort": 1 }));
    Ok(lines)
}

/// Runs the plan of a payment whose head was damaged since.
async fn undo_of_a_damaged_head() -> Result<Vec<String>> {
    let world = world_of(CREATED).await?;
    let ask = async |request: Value| {
        let outcome = world.functions().scheduled("undo", request, context(NO_DEADLINE)).await;
        outcome.map_err(anyhow::Error::msg)
    };
    let id = "0123456789abcdef";
    let plan = ask(json!({ "action": "plan", "id": id, "select": { "dueDate": "2090-06-15" } })).await?;
    let head = world.heads(ACCOUNT).await?.into_iter().next().context("no head")?;
    world.update(&head, NO_AMOUNT, &[(":value", number(0))]).await?;
    drop(world.outside.metrics.take());
    ask(json!({ "action": "run", "id": id, "plan": 1, "sha256": plan["sha256"], "ticket": "INC-4711" })).await?;
    Ok(world.outside.metrics.take())
}

/// A run that was committed and not finished, and whose files are gone.
async fn file_gone() -> Result<Vec<String>> {
    let world = world_of(DAY).await?;
    ran(&world, ONE, REPORT, NO_DEADLINE).await?;
    let job = item([("pk", text("CHECKPOINT#report")), ("sk", text("job"))]);
    world.update(&job, "SET finished = :no", &[(":no", AttributeValue::Bool(false))]).await?;
    let files: Vec<_> = world.outside.reports.list(None).map_ok(|file| file.location).try_collect().await?;
    for file in files {
        world.outside.reports.delete(&file).await?;
    }
    ran(&world, ONE, REPORT, NO_DEADLINE).await.err().context("it ran without the file")?;
    Ok(world.outside.metrics.take())
}

/// A consumer is at a place of a log that is gone.
async fn of_lost_log(consumer: &str) -> Result<Vec<String>> {
    let world = world_of(COUNTED).await?;
    world.store().await.move_log_consumer(consumer, None, "7.3.0".parse()?).await?;
    let bus = (consumer == Bus::CONSUMER).then(|| Arc::new(Bus::default()) as _);
    let publish = world.functions().publish.clone().with_bus(bus);
    invoke(|event| publish.handle(event), json!({ "action": "publish" })).await?;
    Ok(world.outside.metrics.take())
}

/// The metrics of a webhook endpoint at a place, which answers with a status.
async fn endpoint(from: &str, status: u16) -> Result<Vec<String>> {
    let (world, receivers) = (world_of(COUNTED).await?, Receivers::default());
    receivers.react(7001, move |_| Reaction::Status(status));
    create_endpoint(&world, "shop", from.parse()?).await?;
    // The time at which the log was written.
    world.set_clock("2026-11-20T09:00:00Z")?;
    let dependencies = Dependencies { webhooks: receivers.webhooks()?, ..world.dependencies(world.client().await) };
    let functions = world.functions_in(&dependencies)?;
    invoke(|event| functions.publish.handle(event), json!({ "action": "publish" })).await?;
    Ok(world.outside.metrics.take())
}

/// Creates an endpoint. A test, and a repeated PUT, change none.
/// An operator enables an endpoint in the console.
async fn endpoint_enabled() -> Result<Vec<String>> {
    let (world, id) = (World::open().await?, "shop".parse()?);
    let body = json!({ "url": "https://hooks.shop.co.uk/", "enabled": false });
    world.send(Ask::new(Method::PUT, "/webhook-endpoints/shop").json(&body)).await?.with_status(201)?;
    let state = world.store().await.webhook_state(&id).await?.context("no endpoint")?;
    let form = json!({
        "step": "do",
        "endpoint": "shop",
        "version": state.version.to_string(),
        "place": state.position.to_string(),
        "at": world.now().to_string(),
        "id": "00000000-0000-5000-8000-000000000001",
    });
    world.outside.metrics.take();
    world.send(Ask::post("/console/actions/enable-endpoint").json(&form)).await?.with_status(200)?;
    Ok(world.outside.metrics.take())
}

async fn endpoint_changed() -> Result<Vec<String>> {
    let world = World::open().await?;
    let put = || Ask::new(Method::PUT, "/webhook-endpoints/shop").json(&json!({ "url": "https://hooks.shop.co.uk/" }));
    world.send(put()).await?;
    let lines = world.outside.metrics.take();
    world.send(put()).await?;
    world.send(Ask::post("/webhook-endpoints/shop/test")).await?;
    ensure!(world.outside.metrics.take().is_empty(), "nothing was changed");
    Ok(lines)
}
