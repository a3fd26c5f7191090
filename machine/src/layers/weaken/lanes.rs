//! A log with two lanes, as a weakness: the segments of half of the stream shards are appended later than the others.
//!
//! Within a lane the order stays. A stream shard that ends and its child can have different lanes, and then the order of a payment's
//! versions is lost.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::take_out::{counting, is_of_log};
use crate::engine::Direct;
use crate::layers::attributes::{number, text};

/// The delay of the second lane after the first.
const BEHIND: Duration = Duration::from_secs(15 * 60);

/// Takes the segment out of a transaction of counters, if its stream shard has the second lane.
pub(super) fn take(input: &mut Value) -> Option<Value> {
    let actions = counting(input)?;
    let shard = text(&actions.first()?["Update"]["Key"], "sk");
    if shard.bytes().fold(0, |sum: u8, byte| sum.wrapping_add(byte)).is_multiple_of(2) {
        return None;
    }
    let segment = actions.iter().find(|action| is_of_log(action) && action["Put"]["Item"].is_object())?;
    let segment = segment["Put"]["Item"].clone();
    actions.retain(|action| !is_of_log(action));
    Some(segment)
}

/// Appends a segment later.
pub(super) async fn append_later(engine: Direct, segment: Value) {
    loop {
        tokio::time::sleep(BEHIND).await;
        // The first lane may have appended nothing yet.
        if append(&engine, &segment).is_ok() {
            return;
        }
    }
}

fn append(engine: &Direct, segment: &Value) -> Result<()> {
    let key = json!({ "pk": { "S": "LOG#HEAD" }, "sk": { "S": "HEAD" } });
    let head = engine.call("GetItem", &json!({ "TableName": "payments-log", "Key": key }))?;
    let head = head.get("Item").context("the log is empty")?;
    let (next, mut segment) = (number(head, "next"), segment.clone());
    segment["sk"] = json!({ "S": format!("{next:012}") });
    engine.call("PutItem", &json!({ "TableName": "payments-log", "Item": segment }))?;
    engine.call(
        "UpdateItem",
        &json!({
            "TableName": "payments-log", "Key": key, "UpdateExpression": "SET #next = :next",
            "ExpressionAttributeNames": { "#next": "next" },
            "ExpressionAttributeValues": { ":next": { "N": (next + 1).to_string() } },
        }),
    )?;
    Ok(())
}
