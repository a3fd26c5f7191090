//! Sealed payments: what a part and the table keep of a payment, from the day on which it is sealed.

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::types::AttributeValue;
use payments_machine::{template, yaml};
use payments_store::{Item, item_bytes};
use serde_json::Value;

/// The days after which a payment's row is in a part.
pub const SEALED_AFTER: u64 = seal::SEAL_AFTER_DAYS as u64;

/// The days after which its data leaves the long-term table: 36 later.
pub const CLEARED_AFTER: u64 = SEALED_AFTER + 36;

/// The clears of a second.
pub(crate) const CLEARS_PER_SECOND: u64 = 320;

/// The least bytes of stored data that are cleared. Fewer stay, because a record would hardly be smaller.
pub const LEAST_CLEARED: usize = 256;

/// The starts of the partition keys of payments' items: heads, details, and the idempotency records of other designs.
const PAYMENTS: [&str; 3] = ["ACCT#", "PAY#", "KEY#"];

/// The names of data.
const DATA: [&str; 4] = ["data", "codec", "frame", "dataBytes"];

/// Returns the bytes of an item's stored data.
pub fn data_bytes(item: &Item) -> usize {
    match (item.get("frame"), item.get("data")) {
        (Some(AttributeValue::B(frame)), _) => frame.as_ref().len(),
        (_, Some(AttributeValue::S(text))) => text.len(),
        _ => 0,
    }
}

/// Returns the item that the clear leaves: a record with the place of its row, if it had much data, and always an expiry.
/// `None` for an item that is not a payment's.
pub fn cleared(item: &Item) -> Option<Item> {
    let pk = item.get("pk")?.as_s().ok()?;
    PAYMENTS.iter().find(|start| pk.starts_with(**start))?;
    let (mut left, has_data) = (item.clone(), data_bytes(item) >= LEAST_CLEARED);
    let mut set = |name: &str, value| left.insert(name.to_owned(), value);
    set("keptUntil", AttributeValue::N("2111356800".to_owned()));
    if has_data {
        for name in DATA {
            left.remove(name);
        }
        let mut set = |name: &str, value| left.insert(name.to_owned(), value);
        set("codec", AttributeValue::S("file".to_owned()));
        set("row", AttributeValue::S("2026-11-20/100/9999".to_owned()));
        set("hash", AttributeValue::B(vec![0; 32].into()));
    }
    Some(left)
}

/// Returns the write units of the clear of an item: DynamoDB charges the larger one of before and after.
pub(crate) fn units(before: &Item, after: &Item) -> u64 {
    u64::try_from(item_bytes(before).max(item_bytes(after)).div_ceil(1_024)).unwrap_or(u64::MAX)
}

/// Returns the days after which S3 archives a part, by the template.
///
/// # Errors
/// If the template has no such number.
pub fn parts_archived_after() -> Result<u64> {
    let template: Value = yaml::from_str(template::OURS).map_err(|error| anyhow::anyhow!("template.yaml, {error}"))?;
    let rules = template["Resources"]["SealedBucket"]["Properties"]["LifecycleConfiguration"]["Rules"].as_array();
    let days = rules.into_iter().flatten().find_map(|rule| rule["Transitions"][0]["TransitionInDays"].as_u64());
    days.context("SealedBucket has no transition")
}
