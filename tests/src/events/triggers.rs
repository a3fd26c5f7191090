//! The events of schedules, stream and queues: the steps before each, its arrival, and its snapshot.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::files::{event_files, event_text, function_of};
use super::requests::http_events;
use crate::given::{ACCOUNT, world_at};
use crate::world::World;

/// The arrival of the events, on the day of the first payment.
const NOW: &str = "2090-06-15T09:00:00Z";

/// The time of the steps before the events.
const THAT_NIGHT: &str = "2090-06-15T00:05:00Z";

/// The start of the archive: half past two of the next night.
const THE_NIGHT_AFTER: &str = "2090-06-16T01:30:00Z";

/// The arrival of `redate`'s events, before a Christmas that the calendars still cover.
const BEFORE_CHRISTMAS: &str = "2035-12-10T09:00:00Z";

/// The steps before each event. No step comes before an event that is not named here.
pub const GIVEN: [(&[&str], &[&str]); 14] = [
    (&[], &["settle/malformed", "settle/unknown-payment"]),
    (&["ingest/create"], &["settle/early"]),
    (&["ingest/batch"], &["daily-due-sweeper/sweep"]),
    (&["ingest/batch", "ingest/cancel"], &["settle/failed-after-cancel", "settle/processed-after-cancel"]),
    (&["ingest/batch", "claimed"], &["settle/mixed-batch"]),
    (&["ingest/batch", "claimed", "processed", "second-claimed"], &["settle/shared-transaction-id"]),
    (
        &["ingest/create", "claimed"],
        &[
            "daily-due-sweeper/redrive",
            "dispatch/became-pending",
            "dispatch/poison-record",
            "dispatch/twice-in-one-batch",
            "settle/failed",
            "settle/other-amount",
            "settle/processed",
            "settle/processed-with-echo",
            "settle/unknown-kind",
            "stream-aggregator/became-pending",
        ],
    ),
    (&["ingest/create", "claimed", "redriven"], &["dispatch/redriven"]),
    (&["a-day"], &["report/report", "undo/plan"]),
    (&["a-day", "reported"], &["archive/archive", "seal/seal"]),
    (&["a-day", "counted"], &["publish/publish", "publish/segment-appended", "recount/recount"]),
    (&["a-day", "counted", "miscounted"], &["recount/recount-dates", "recount/repair", "recount/repair-alone"]),
    (
        &["holiday-announced"],
        &[
            "redate/calendar-unknown",
            "redate/from-after-to",
            "redate/from-too-long-ago",
            "redate/look",
            "redate/look-at-a-calendar",
            "redate/move",
            "redate/move-without-dates",
            "redate/too-many-dates",
        ],
    ),
    (&["ingest/create", "claimed", "processed"], &["dispatch/moved-on", "settle/conflicting", "settle/repeated"]),
];

/// The attributes of a head in a snapshot, in this order.
const SHOWN: [&str; 6] = ["status", "version", "dispatchAttempt", "transactionId", "failureCode", "failureReason"];

/// A world on the day of the first payment, after these steps.
pub async fn world_of(steps: &[&str]) -> Result<World> {
    let world = world_at(steps, THAT_NIGHT, NOW).await?;
    drop(world.outside.metrics.take());
    Ok(world)
}

/// The steps before the event of this name.
pub fn found_by(name: &str) -> &'static [&'static str] {
    GIVEN.iter().find(|(_, names)| names.contains(&name)).map_or(&[], |(steps, _)| steps)
}

/// The text of an event as it arrives: the stream is that of this world's table.
pub fn delivered(world: &World, name: &str) -> Result<String> {
    Ok(event_text(name)?.replace("table/payments/", &format!("table/{}/", world.environment.tables.payments)))
}

/// The arrival of an event.
pub fn now_of(name: &str) -> &'static str {
    match function_of(name) {
        "archive" => THE_NIGHT_AFTER,
        "redate" => BEFORE_CHRISTMAS,
        _ => NOW,
    }
}

/// The deadline of an event's invocation: five minutes later.
pub fn deadline_of(name: &str) -> Result<DateTime<Utc>> {
    Ok((DateTime::parse_from_rfc3339(now_of(name))? + TimeDelta::minutes(5)).to_utc())
}

fn now() -> Result<DateTime<Utc>> {
    Ok(DateTime::parse_from_rfc3339(NOW)?.to_utc())
}

/// All that an event led to: its answer and metrics, the messages, and the payments.
pub async fn snapshot_text(world: &World, answer: &Value, metrics: &[String]) -> Result<String> {
    let mut text = format!("answer:\n{}\n", serde_json::to_string_pretty(answer)?);
    for message in world.outside.requests.receive(10, now()?) {
        write!(text, "\nsent to {}:\n{}\n", world.outside.requests.settings().name, message.body)?;
    }
    for line in metrics {
        write!(text, "\nmeasured:\n{}\n", without_versions(line)?)?;
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

/// The rule of the messages' order: results are settled concurrently, so failed messages are sorted by id here. SQS
/// ignores the order.
pub fn in_order_of_ids(mut response: Value) -> Value {
    if let Some(failures) = response.get_mut("batchItemFailures").and_then(Value::as_array_mut) {
        failures.sort_by_key(|failure| failure["itemIdentifier"].to_string());
    }
    response
}

/// The rule of the metrics' time, and of the version of the time zones: they are the machine's and IANA's, and left out.
fn without_versions(line: &str) -> Result<Value> {
    let mut line: Value = serde_json::from_str(line)?;
    let timestamp = line.pointer_mut("/_aws/Timestamp").context("a metric without a time")?;
    *timestamp = json!("(the machine's)");
    if let Some(version) = line.get_mut("TimeZoneData") {
        *version = json!("(IANA's)");
    }
    Ok(line)
}

/// A text or number attribute.
fn plain(value: &AttributeValue) -> &str {
    value.as_s().or_else(|_| value.as_n()).map_or("", String::as_str)
}

/// The names of the events of functions that answer no HTTP.
pub fn trigger_events() -> Result<BTreeSet<String>> {
    Ok(&event_files()? - &http_events()?)
}
