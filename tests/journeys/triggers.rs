//! The event files of the functions that nobody asks over HTTP, run: each is what a schedule, the
//! table's stream or the queue of results delivers. What it is answered, what is sent, what is
//! measured and what becomes of the payments is written down.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use aws_lambda_events::dynamodb;
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, TimeDelta, Utc};
use insta::{Settings, assert_snapshot};
use lambda_runtime::{Context, LambdaEvent};
use payments_http::routes::ROUTES;
use payments_store::Item;
use payments_tests::World;
use serde_json::{Value, json};

use crate::given::{self, ACCOUNT, Given, HORIZON_DAYS, assert_names_events, event_text, events, function_of, prepare};

/// When the events arrive: on the day of the first payment.
const NOW: &str = "2090-06-15T09:00:00Z";

/// When what they find had become what it is.
const THAT_NIGHT: &str = "2090-06-15T00:05:00Z";

/// When the archive runs: at half past two of the night after.
const THE_NIGHT_AFTER: &str = "2090-06-16T01:30:00Z";

/// What each event finds. One that is not named here finds nothing.
const GIVEN: [(Given, &[&str]); 12] = [
    (Given::Nothing, &["settle-malformed", "settle-unknown-payment"]),
    (Given::OnePayment, &["settle-early"]),
    (Given::TwoPayments, &["daily-due-sweeper-sweep"]),
    (Given::OneOfTwoPending, &["settle-mixed-batch"]),
    (Given::OneProcessedOnePending, &["settle-shared-transaction-id"]),
    (
        Given::Pending,
        &[
            "daily-due-sweeper-redrive",
            "dispatch-became-pending",
            "dispatch-poison-record",
            "dispatch-twice-in-one-batch",
            "settle-failed",
            "settle-processed",
            "settle-processed-with-echo",
        ],
    ),
    (Given::Redriven, &["dispatch-redriven"]),
    (Given::ADay, &["report-report"]),
    (Given::ADayHalfReported, &["archive-archive"]),
    (Given::ADayCounted, &["recount-recount"]),
    (Given::ADayMiscounted, &["recount-recount-dates", "recount-repair"]),
    (Given::Processed, &["dispatch-moved-on", "settle-conflicting", "settle-repeated"]),
];

/// What of a head is written down, in this order.
const SHOWN: [&str; 5] = ["status", "version", "dispatchAttempt", "transactionId", "failureReason"];

#[tokio::test]
async fn every_trigger_does_what_is_written_down() -> Result<()> {
    for name in trigger_events()? {
        let (given, _) = given::given(&GIVEN, &name);
        let world = bank(given).await.with_context(|| format!("preparing {given:?} for {name}"))?;
        world.set_clock(now_of(&name))?;
        let answer = run(&world, &name).await?;
        let what_happened = written_down(&world, &answer).await?;
        let mut settings = Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.set_description(format!("events/{name}.json, which finds: {given:?}"));
        settings.bind(|| assert_snapshot!(name.as_str(), what_happened));
        world.close().await?;
    }
    Ok(())
}

#[test]
fn what_triggers_find_is_about_events_that_are_there() -> Result<()> {
    assert_names_events(&GIVEN, &trigger_events()?);
    Ok(())
}

#[tokio::test]
async fn the_images_in_the_stream_events_are_what_the_store_writes() -> Result<()> {
    for (name, before, after) in [
        ("dispatch-became-pending", Given::OnePayment, Given::Pending),
        ("dispatch-redriven", Given::Pending, Given::Redriven),
    ] {
        let event: dynamodb::Event = serde_json::from_str(&event_text(name)?)?;
        let change = event.records.into_iter().next().context("a record")?.change;
        for (given, image) in [(before, change.old_image), (after, change.new_image)] {
            let image = image.into_inner().into_iter();
            let image: Item = image.map(|(name, value)| (name, AttributeValue::from(value))).collect();
            let world = bank(given).await?;
            assert_eq!(world.heads(ACCOUNT).await?, [image], "events/{name}.json: {given:?}");
            world.close().await?;
        }
    }
    Ok(())
}

/// A bank on the day of the first payment, as an event finds it.
async fn bank(given: Given) -> Result<World> {
    let world = World::with(|environment| environment.horizon_days = HORIZON_DAYS).await?;
    prepare(&world, given, THAT_NIGHT).await?;
    world.set_clock(NOW)?;
    drop(world.outside.metrics.take());
    Ok(world)
}

/// Runs an event through its function. One that its function cannot even read is answered by
/// Lambda's runtime, with the reason.
async fn run(world: &World, name: &str) -> Result<Value> {
    let (text, functions) = (event_text(name)?, world.functions());
    let answer = match function_of(name)?.as_str() {
        "archive" => match serde_json::from_str(&text) {
            Ok(request) => {
                let report = functions.archive.handle(LambdaEvent::new(request, context(name)?)).await;
                serde_json::to_value(report.map_err(anyhow::Error::msg)?)?
            }
            Err(error) => json!({ "notTaken": error.to_string() }),
        },
        "daily-due-sweeper" => match serde_json::from_str(&text) {
            Ok(request) => {
                let report = functions.sweeper.handle(LambdaEvent::new(request, context(name)?)).await;
                serde_json::to_value(report.map_err(anyhow::Error::msg)?)?
            }
            Err(error) => json!({ "notTaken": error.to_string() }),
        },
        "dispatch" => {
            let response = functions.dispatch.handle(serde_json::from_str(&text)?).await;
            serde_json::to_value(response.map_err(anyhow::Error::msg)?)?
        }
        "recount" => match serde_json::from_str(&text) {
            Ok(request) => match functions.recount.handle(LambdaEvent::new(request, context(name)?)).await {
                Ok(report) => serde_json::to_value(report)?,
                Err(error) => json!({ "refused": error.to_string() }),
            },
            Err(error) => json!({ "notTaken": error.to_string() }),
        },
        "report" => match serde_json::from_str(&text) {
            Ok(request) => {
                let report = functions.report.handle(LambdaEvent::new(request, context(name)?)).await;
                serde_json::to_value(report.map_err(anyhow::Error::msg)?)?
            }
            Err(error) => json!({ "notTaken": error.to_string() }),
        },
        "settle" => {
            let response = functions.settle.handle(serde_json::from_str(&text)?).await;
            in_order_of_ids(serde_json::to_value(response)?)
        }
        other => bail!("nothing here runs {other}"),
    };
    Ok(answer)
}

/// When an event arrives.
fn now_of(name: &str) -> &'static str {
    if name.starts_with("archive-") { THE_NIGHT_AFTER } else { NOW }
}

/// An event's invocation with five minutes to go.
fn context(name: &str) -> Result<Context> {
    let deadline = DateTime::parse_from_rfc3339(now_of(name))? + TimeDelta::minutes(5);
    let mut context = Context::default();
    context.deadline = u64::try_from(deadline.timestamp_millis())?;
    Ok(context)
}

fn now() -> Result<DateTime<Utc>> {
    Ok(DateTime::parse_from_rfc3339(NOW)?.to_utc())
}

/// All that an event led to.
async fn written_down(world: &World, answer: &Value) -> Result<String> {
    let mut text = format!("answer:\n{}\n", serde_json::to_string_pretty(answer)?);
    for message in world.outside.requests.receive(10, now()?) {
        write!(text, "\nsent to {}:\n{}\n", world.outside.requests.settings().name, message.body)?;
    }
    for line in world.outside.metrics.take() {
        write!(text, "\nmeasured:\n{}\n", without_time(&line)?)?;
    }
    for (place, heads) in
        [("left behind", world.heads(ACCOUNT).await?), ("in history", world.archived_heads(ACCOUNT).await?)]
    {
        for head in heads {
            write!(text, "\n{place}:\n{}\n", plain(&head["sk"]))?;
            for name in SHOWN {
                if let Some(value) = head.get(name) {
                    writeln!(text, "  {name}: {}", plain(value))?;
                }
            }
        }
    }
    Ok(text)
}

/// The rule of the messages' order: settling them is concurrent, so the order of those that come
/// again is that of their ids here; SQS does not look at it.
fn in_order_of_ids(mut response: Value) -> Value {
    if let Some(failures) = response["batchItemFailures"].as_array_mut() {
        failures.sort_by_key(|failure| failure["itemIdentifier"].to_string());
    }
    response
}

/// The rule of the metrics' time: it is the machine's, and not written down.
fn without_time(line: &str) -> Result<Value> {
    let mut line: Value = serde_json::from_str(line)?;
    let timestamp = line.pointer_mut("/_aws/Timestamp").context("a metric without a time")?;
    *timestamp = json!("(the machine's)");
    Ok(line)
}

/// A text or number as it is stored.
fn plain(value: &AttributeValue) -> &str {
    value.as_s().or_else(|_| value.as_n()).map_or("", String::as_str)
}

/// The events of functions that answer no HTTP.
fn trigger_events() -> Result<BTreeSet<String>> {
    let mut triggers = BTreeSet::new();
    for name in events()? {
        let function = function_of(&name)?;
        if ROUTES.iter().all(|spec| spec.function != function) {
            triggers.insert(name);
        }
    }
    Ok(triggers)
}
