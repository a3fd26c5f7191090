//! The cases of the HTTP functions: each runs through its function's handler in its own world, and its answer is a
//! snapshot.

use payments_tests::prelude::*;
use std::path::Path;

use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use insta::assert_snapshot;
use payments_http::problem::TYPE_BASE;
use payments_http::routes::{DEFAULT_FUNCTION, by_key};
use payments_tests::events::files::{answers, event_files, event_text, function_of, snapshot_of};
use payments_tests::events::requests::{event_of, given, http_events, request_text};
use payments_tests::given::{http_event, run, world_of};

/// The operations whose result depends on stored items.
const READS: [&str; 4] = ["BatchGetItem", "GetItem", "Query", "UpdateItem"];

#[tokio::test]
async fn every_event_is_answered_as_in_its_snapshot() -> Result<()> {
    for name in http_events()? {
        let world = world_of(&name).await?;
        let reply = run(&world, &name).await?;
        let operations = world.recorder.take_operations();
        let reads = operations.iter().any(|operation| READS.contains(&operation.as_str()));
        assert!(given(&name)?.is_some() || !reads, "{name} reads: say in its row what is given");
        assert_is_whole(&name, &reply);
        let (settings, case) = snapshot_of(&name);
        settings.bind(|| assert_snapshot!(case, reply));
    }
    Ok(())
}

#[test]
fn every_event_belongs_to_a_function() -> Result<()> {
    for name in events()? {
        let function = Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions").join(function_of(&name));
        assert!(function.is_dir(), "{name} is in no function's folder");
    }
    for name in http_events()? {
        let event = http_event(&name)?;
        let key = event.route_key.as_deref().unwrap_or_default();
        let answers = by_key(key).map_or(DEFAULT_FUNCTION, |spec| spec.function);
        assert_eq!(answers.name(), function_of(&name), "{name} is for {key}");
        assert_eq!(event.version.as_deref(), Some("2.0"), "{name}");
        assert_eq!(event.request_context.route_key.as_deref(), Some(key), "{name}");
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
        let event: Value = serde_json::from_str(&request_text(&name)?)?;
        let given = event.get("queryStringParameters").cloned().unwrap_or_else(|| json!({}));
        assert_eq!(given, json!(joined), "{name}");
    }
    Ok(())
}

#[test]
fn every_snapshot_belongs_to_an_event() -> Result<()> {
    let (events, answers) = (events()?, answers()?);
    let stale: Vec<_> = answers.difference(&events).collect();
    assert!(stale.is_empty(), "snapshots without an event: {stale:?}");
    Ok(())
}

#[test]
fn rows_become_the_events_that_were_recorded() -> Result<()> {
    let recorded = &event_files()? & &http_events()?;
    let functions: BTreeSet<_> = recorded.iter().map(|name| function_of(name)).collect();
    let all = http_events()?;
    assert_eq!(functions, all.iter().map(|name| function_of(name)).collect(), "functions with a recorded event");
    for name in &recorded {
        let recorded = serde_json::from_str(&event_text(name)?)?;
        assert_eq!(as_read(event_of(name)?)?, as_read(recorded)?, "{name}");
    }
    Ok(())
}

/// All events: those of rows and those of files.
fn events() -> Result<BTreeSet<String>> {
    Ok(&event_files()? | &http_events()?)
}

/// An event as the functions get it, without what they do not read: the connection, the API, and the times.
fn as_read(event: Value) -> Result<Value> {
    let event: ApiGatewayV2httpRequest = serde_json::from_value(event)?;
    let mut event = serde_json::to_value(event)?;
    for (place, names) in [
        ("/headers", "accept authorization content-length host user-agent x-amzn-trace-id"),
        ("/headers", "x-forwarded-for x-forwarded-port x-forwarded-proto"),
        ("/requestContext", "accountId apiId domainName domainPrefix time timeEpoch"),
        ("/requestContext/http", "protocol sourceIp userAgent"),
        ("/requestContext/authorizer/jwt/claims", "exp iat iss"),
    ] {
        let fields = event.pointer_mut(place).and_then(Value::as_object_mut).context(place)?;
        fields.retain(|name, _| names.split(' ').all(|other| other != name));
    }
    Ok(event)
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
