//! The event files of the HTTP functions, run: each is what API Gateway sends, goes through its
//! function's own handler in a bank of its own, and its answer is written down.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use insta::{Settings, assert_snapshot};
use payments_http::problem::TYPE_BASE;
use payments_http::routes::{DEFAULT_FUNCTION, ROUTES, by_key};
use payments_model::settlement::FailureReason;
use payments_model::{Actor, Head, State};
use payments_store::{HeadKey, HeadSort, Moved};
use payments_tests::{Reply, World};

/// When the events arrive.
const NOW: &str = "2026-11-20T09:00:00Z";

/// When what they find was put in, and what became of it.
const AN_HOUR_AGO: &str = "2026-11-20T08:00:00Z";
const HALF_AN_HOUR_AGO: &str = "2026-11-20T08:30:00Z";

/// How far ahead these banks take payments: the events ask for June 2090, so that the files work
/// for a long time, also where the clock is a real one.
const HORIZON_DAYS: u32 = 25_000;

/// What an event finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    /// An empty bank.
    Nothing,
    /// The payment of `ingest-create`, `SCHEDULED`.
    OnePayment,
    /// The two payments of `ingest-batch`; the first is also `ingest-create`'s.
    TwoPayments,
    /// The same, and the first one cancelled.
    OneOfTwoCancelled,
    /// The payment of `ingest-create`, swept.
    Pending,
    /// The same, settled.
    Processed,
    /// The same, refused by the transaction service.
    Failed,
}

/// What each event finds. One that is not named here finds nothing and must not read anything.
const GIVEN: [(Given, &[&str]); 7] = [
    (
        Given::Nothing,
        &[
            "ingest-batch-mixed",
            "ingest-cancel-unknown",
            "ingest-create-date-beyond-horizon",
            "ingest-create-date-passed",
            "query-account-get-unknown",
            "query-account-list-account-unknown",
        ],
    ),
    (
        Given::OnePayment,
        &[
            "ingest-batch-same-key",
            "ingest-cancel",
            "ingest-cancel-empty-object",
            "ingest-cancel-other-account",
            "ingest-create-again",
            "ingest-create-key-reused",
            "query-account-get",
            "query-account-get-other-account",
        ],
    ),
    (
        Given::TwoPayments,
        &[
            "ingest-batch-again",
            "query-account-list",
            "query-account-list-data",
            "query-account-list-page-1",
            "query-account-list-page-2",
            "query-account-list-cursor-alone",
        ],
    ),
    (
        Given::OneOfTwoCancelled,
        &[
            "ingest-cancel-again",
            "ingest-create-again-after-cancel",
            "query-account-get-cancelled",
            "query-account-list-status",
        ],
    ),
    (Given::Pending, &["ingest-cancel-pending"]),
    (Given::Processed, &["ingest-cancel-processed", "query-account-get-processed"]),
    (Given::Failed, &["query-account-get-failed"]),
];

/// The operations whose result depends on what is there.
const READS: [&str; 4] = ["BatchGetItem", "GetItem", "Query", "UpdateItem"];

#[tokio::test]
async fn every_event_is_answered_as_written_down() -> Result<()> {
    for name in http_events()? {
        let (given, is_stated) = given(&name);
        let world = World::with(|environment| environment.horizon_days = HORIZON_DAYS).await?;
        prepare(&world, given).await.with_context(|| format!("preparing {given:?} for {name}"))?;
        world.set_clock(NOW)?;
        drop(world.wire.take_operations());
        let reply = run(&world, &name).await?;
        let operations = world.wire.take_operations();
        let reads = operations.iter().any(|operation| READS.contains(&operation.as_str()));
        assert!(is_stated || !reads, "events/{name}.json reads: say in GIVEN what it finds");
        assert_is_whole(&name, &reply);
        let mut settings = Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.set_description(format!("events/{name}.json, which finds: {given:?}"));
        settings.bind(|| assert_snapshot!(name.as_str(), reply));
        world.close().await?;
    }
    Ok(())
}

#[test]
fn every_event_file_belongs_to_a_function() -> Result<()> {
    for name in names("../events", ".json")? {
        function_of(&name)?;
    }
    for name in http_events()? {
        let event = event(&name)?;
        let key = event.route_key.as_deref().unwrap_or_default();
        let answers = by_key(key).map_or(DEFAULT_FUNCTION, |spec| spec.function);
        assert_eq!(answers, function_of(&name)?, "events/{name}.json is for {key}");
        assert_eq!(event.version.as_deref(), Some("2.0"), "events/{name}.json");
        assert_eq!(event.request_context.route_key.as_deref(), Some(key), "events/{name}.json");
    }
    Ok(())
}

#[test]
fn what_events_find_and_get_is_about_events_that_are_there() -> Result<()> {
    let events = http_events()?;
    let stated: Vec<&str> = GIVEN.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    for (at, name) in stated.iter().enumerate() {
        assert!(events.contains(*name), "GIVEN names {name}, which is no event");
        assert!(!stated[..at].contains(name), "GIVEN names {name} twice");
    }
    let answers: BTreeSet<_> = names("journeys/snapshots", ".snap")?;
    let stale: Vec<_> = answers.iter().filter(|name| function_of(name).is_ok() && !events.contains(*name)).collect();
    assert!(stale.is_empty(), "snapshots without an event: {stale:?}");
    Ok(())
}

/// What the event of this name finds, and whether it says so.
fn given(name: &str) -> (Given, bool) {
    let row = GIVEN.iter().find(|(_, names)| names.contains(&name));
    row.map_or((Given::Nothing, false), |(given, _)| (*given, true))
}

/// Brings a bank to where an event finds it, through its own front door as far as that goes.
async fn prepare(world: &World, given: Given) -> Result<()> {
    world.set_clock(AN_HOUR_AGO)?;
    match given {
        Given::Nothing => Ok(()),
        Given::OnePayment => put(world, "ingest-create").await.map(drop),
        Given::TwoPayments => put(world, "ingest-batch").await.map(drop),
        Given::OneOfTwoCancelled => {
            put(world, "ingest-batch").await?;
            world.set_clock(HALF_AN_HOUR_AGO)?;
            put(world, "ingest-cancel").await.map(drop)
        }
        Given::Pending => move_on(world, vec![State::Pending]).await,
        Given::Processed => move_on(world, vec![State::Pending, State::Processed("TX-20900615-1".parse()?)]).await,
        Given::Failed => {
            let reason = FailureReason::cut("The payee's account is closed.");
            move_on(world, vec![State::Pending, State::Failed(reason)]).await
        }
    }
}

/// Runs an event that has to succeed.
async fn put(world: &World, name: &str) -> Result<Reply> {
    let reply = run(world, name).await?;
    ensure!(reply.status < 300, "{reply}");
    Ok(reply)
}

/// Puts the payment of `ingest-create` in and takes it through these states.
async fn move_on(world: &World, states: Vec<State>) -> Result<()> {
    let payment_id = put(world, "ingest-create").await?.field("paymentId").parse()?;
    let store = world.store().await;
    let details = store.details(payment_id).await?.context("the payment has no details")?;
    let sort = HeadSort { due_at: details.due_at, payment_id };
    let key = HeadKey { account: details.instruction.account.clone(), sort };
    let mut head = Head::scheduled(&details);
    for state in states {
        let step = head.step(state, HALF_AN_HOUR_AGO.parse()?, Actor::named("the test"));
        head = match store.transition(&key, details.due_date, &step).await? {
            Moved::Done(head) => *head,
            Moved::Elsewhere(found) => bail!("{step:?} met {found:?}"),
        };
    }
    Ok(())
}

/// Runs an event through its function.
async fn run(world: &World, name: &str) -> Result<Reply> {
    let response = world.functions().invoke(&function_of(name)?, event(name)?).await;
    Reply::of(response).with_context(|| name.to_owned())
}

/// Every refusal is a problem of RFC 9457 that agrees with its own status; nothing else is.
fn assert_is_whole(name: &str, reply: &Reply) {
    let is_refusal = reply.status >= 400;
    let content_type = if is_refusal { "application/problem+json" } else { "application/json" };
    assert_eq!(reply.header("content-type"), Some(content_type), "{name}: {reply}");
    assert_eq!(reply.field("type").starts_with(TYPE_BASE), is_refusal, "{name}: {reply}");
    if is_refusal {
        assert_eq!(reply.body["status"], reply.status, "{name}: {reply}");
        assert!(!reply.field("detail").is_empty(), "{name}: {reply}");
    }
}

/// The events of functions that answer HTTP.
fn http_events() -> Result<BTreeSet<String>> {
    let mut events = BTreeSet::new();
    for name in names("../events", ".json")? {
        let function = function_of(&name)?;
        if ROUTES.iter().any(|spec| spec.function == function) {
            events.insert(name);
        }
    }
    Ok(events)
}

fn event(name: &str) -> Result<ApiGatewayV2httpRequest> {
    let path = in_repository("../events").join(format!("{name}.json"));
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

/// The function whose package name an event's name begins with.
fn function_of(name: &str) -> Result<String> {
    let functions = names("../functions", "")?.into_iter();
    let longest = functions.filter(|function| name.starts_with(&format!("{function}-"))).max_by_key(String::len);
    longest.with_context(|| format!("{name} begins with no function's name"))
}

/// The names of the files or folders in a folder, without their ending.
fn names(folder: &str, ending: &str) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(in_repository(folder)).with_context(|| folder.to_owned())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(ending).map(str::to_owned));
    }
    ensure!(!names.is_empty(), "{folder} has no *{ending}");
    Ok(names)
}

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
