//! The event files of the HTTP functions, run: each is what API Gateway sends, goes through its
//! function's own handler in a bank of its own, and its answer is written down.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use insta::{Settings, assert_snapshot};
use payments_http::problem::TYPE_BASE;
use payments_http::routes::{DEFAULT_FUNCTION, ROUTES, by_key};
use payments_tests::{Reply, World};

use crate::given::{
    self, Given, HORIZON_DAYS, answers, assert_names_events, events, function_of, http_event, prepare, run,
};

/// When the events arrive.
const NOW: &str = "2026-11-20T09:00:00Z";

/// When what they find had become what it is.
const HALF_AN_HOUR_AGO: &str = "2026-11-20T08:30:00Z";

/// What each event finds. One that is not named here finds nothing and must not read anything.
const GIVEN: [(Given, &[&str]); 9] = [
    (
        Given::Nothing,
        &[
            "ingest-batch-mixed",
            "ingest-cancel-unknown",
            "ingest-create-date-beyond-horizon",
            "ingest-create-data-too-large",
            "ingest-create-date-passed",
            "query-account-get-unknown",
            "query-account-list-account-unknown",
            "query-due-list-date-over",
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
            "query-account-get-token-of-account",
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
    (
        Given::Processed,
        &[
            "ingest-cancel-processed",
            "query-account-get-processed",
            "query-due-transaction",
            "query-due-transaction-unknown",
        ],
    ),
    (Given::Failed, &["query-account-get-failed"]),
    (Given::ADayCounted, &["query-due-counts"]),
    (
        Given::ADay,
        &[
            "query-due-list",
            "query-due-list-cursor-alone",
            "query-due-list-date-empty",
            "query-due-list-page-1",
            "query-due-list-page-2",
            "query-due-list-shard",
            "query-due-list-status",
        ],
    ),
];

/// The operations whose result depends on what is there.
const READS: [&str; 4] = ["BatchGetItem", "GetItem", "Query", "UpdateItem"];

#[tokio::test]
async fn every_event_is_answered_as_written_down() -> Result<()> {
    for name in http_events()? {
        let (given, is_stated) = given::given(&GIVEN, &name);
        let world = World::with(|environment| environment.horizon_days = HORIZON_DAYS).await?;
        let prepared = prepare(&world, given, HALF_AN_HOUR_AGO).await;
        prepared.with_context(|| format!("preparing {given:?} for {name}"))?;
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
    for name in events()? {
        function_of(&name)?;
    }
    for name in http_events()? {
        let event = http_event(&name)?;
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
    assert_names_events(&GIVEN, &http_events()?);
    let (events, answers) = (events()?, answers()?);
    let stale: Vec<_> = answers.iter().filter(|name| function_of(name).is_ok() && !events.contains(*name)).collect();
    assert!(stale.is_empty(), "snapshots without an event: {stale:?}");
    Ok(())
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
    let mut http = BTreeSet::new();
    for name in events()? {
        let function = function_of(&name)?;
        if ROUTES.iter().any(|spec| spec.function == function) {
            http.insert(name);
        }
    }
    Ok(http)
}
