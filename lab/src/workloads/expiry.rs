//! AWS's own removals: items that have expired, days late, and stream records after a day.

use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::plans::faults::FaultKind;
use crate::time::pause;
use crate::world::bank::Bank;

/// The time from one trim of records to the next.
const TRIMS: TimeDelta = TimeDelta::hours(1);

/// After how many trims expired items are looked for: that reads the whole hot table.
const LOOKS: u32 = 12;

/// The time for which a stream keeps its records.
const KEPT: TimeDelta = TimeDelta::hours(24);

/// The longest time from an item's expiry to its removal. DynamoDB says "within a few days".
const LONGEST: TimeDelta = TimeDelta::days(4);

/// Removes what has expired.
pub(crate) async fn run(bank: Arc<Bank>) {
    let mut random = bank.seed.source("expiry");
    for trims in 1_u32.. {
        pause(TRIMS).await;
        let now = bank.time.now();
        bank.stream.trim(now - KEPT);
        if !trims.is_multiple_of(LOOKS) || bank.switches.is_restoring() {
            continue;
        }
        let late = if bank.faults.has(FaultKind::ExpiredLate) { random.i64(0..LONGEST.num_seconds()) } else { 0 };
        let scan = json!({
            "TableName": "payments", "FilterExpression": "expires_at < :then", "ProjectionExpression": "pk, sk",
            "ExpressionAttributeValues": { ":then": { "N": (now.timestamp() - late).to_string() } },
        });
        let Ok(expired) = bank.engine.call("Scan", &scan) else { continue };
        for key in expired["Items"].as_array().into_iter().flatten() {
            remove(&bank, key, late > 3_600);
        }
    }
}

fn remove(bank: &Bank, key: &Value, is_late: bool) {
    let delete = json!({ "TableName": "payments", "Key": key });
    let is_removed = bank.engine.call("DeleteItem", &delete).is_ok();
    if is_removed && bank.changes.follow().is_ok() && is_late {
        bank.faults.count(FaultKind::ExpiredLate);
    }
}
