//! The event files of the HTTP functions: each runs through its function's handler in its own world, and its answer
//! is a snapshot.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use insta::assert_snapshot;
use payments_http::problem::TYPE_BASE;
use payments_http::routes::{DEFAULT_FUNCTION, by_key};
use payments_tests::Reply;
use payments_tests::given::{
    answers, assert_names_events, event_text, events, function_of, http_event, run, snapshot_of,
};
use payments_tests::http_events::{GIVEN, http_events, world_of};
use serde_json::{Value, json};

/// The operations whose result depends on stored items.
const READS: [&str; 4] = ["BatchGetItem", "GetItem", "Query", "UpdateItem"];

#[tokio::test]
async fn every_event_is_answered_as_in_its_snapshot() -> Result<()> {
    for name in http_events()? {
        let (world, given, is_stated) = world_of(&name).await?;
        let reply = run(&world, &name).await?;
        let operations = world.recorder.take_operations();
        let reads = operations.iter().any(|operation| READS.contains(&operation.as_str()));
        assert!(is_stated || !reads, "events/{name}.json reads: say in GIVEN what it finds");
        assert_is_whole(&name, &reply);
        let (settings, case) = snapshot_of(&name, given);
        settings.bind(|| assert_snapshot!(case, reply));
    }
    Ok(())
}

#[test]
fn every_event_file_belongs_to_a_function() -> Result<()> {
    for name in events()? {
        let function = Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions").join(function_of(&name));
        assert!(function.is_dir(), "events/{name}.json is in no function's folder");
    }
    for name in http_events()? {
        let event = http_event(&name)?;
        let key = event.route_key.as_deref().unwrap_or_default();
        let answers = by_key(key).map_or(DEFAULT_FUNCTION, |spec| spec.function);
        assert_eq!(answers.name(), function_of(&name), "events/{name}.json is for {key}");
        assert_eq!(event.version.as_deref(), Some("2.0"), "events/{name}.json");
        assert_eq!(event.request_context.route_key.as_deref(), Some(key), "events/{name}.json");
    }
    Ok(())
}

#[test]
fn every_event_has_its_parameters_in_both_forms() -> Result<()> {
    for name in http_events()? {
        let event = http_event(&name)?;
        // As API Gateway does it: decoded, and repeated ones joined by commas.
        let mut joined: BTreeMap<String, String> = BTreeMap::new();
        let raw = event.raw_query_string.as_deref().unwrap_or_default();
        for (name, value) in form_urlencoded::parse(raw.as_bytes()).into_owned() {
            joined.entry(name).and_modify(|values| *values = format!("{values},{value}")).or_insert(value);
        }
        let event: Value = serde_json::from_str(&event_text(&name)?)?;
        let given = event.get("queryStringParameters").cloned().unwrap_or_else(|| json!({}));
        assert_eq!(given, json!(joined), "events/{name}.json");
    }
    Ok(())
}

#[test]
fn every_given_and_every_snapshot_belongs_to_an_event() -> Result<()> {
    assert_names_events(&GIVEN, &http_events()?);
    let (events, answers) = (events()?, answers()?);
    let stale: Vec<_> = answers.difference(&events).collect();
    assert!(stale.is_empty(), "snapshots without an event: {stale:?}");
    Ok(())
}

/// Every error is a problem of RFC 9457 that agrees with its status; nothing else is. Only pages for people are text.
fn assert_is_whole(name: &str, reply: &Reply) {
    let is_refusal = reply.status >= 400;
    let content_type = match (is_refusal, reply.body.is_string()) {
        (true, _) => "application/problem+json",
        (false, true) if function_of(name) == "console" => "text/html; charset=utf-8",
        (false, true) => "text/plain; charset=utf-8",
        (false, false) => "application/json",
    };
    assert_eq!(reply.header("content-type"), Some(content_type), "{name}: {reply}");
    assert_eq!(reply.field("type").starts_with(TYPE_BASE), is_refusal, "{name}: {reply}");
    if is_refusal {
        assert_eq!(reply.body["status"], reply.status, "{name}: {reply}");
        assert!(!reply.field("detail").is_empty(), "{name}: {reply}");
    }
}
