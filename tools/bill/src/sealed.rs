//! Sealed payments: what a part and the table keep of a payment, from the day on which it is sealed.

use anyhow::{Context as _, Result};
use payments_machine::{template, yaml};
use payments_model::{DataHash, SealedData};
use payments_store::{Item, item_bytes};
use serde_json::Value;

/// The days after which a payment's row is in a part.
pub const SEALED_AFTER: u64 = seal::SEAL_AFTER_DAYS as u64;

/// The days after which its data leaves the long-term table.
pub const CLEARED_AFTER: u64 = SEALED_AFTER + seal::CLEAR_AFTER_DAYS as u64;

/// The clears of a second.
pub(crate) const CLEARS_PER_SECOND: u64 = seal::CLEARS_PER_SECOND as u64;

/// Returns the item that the clear leaves. `None` for an item that stays as it is.
///
/// # Errors
/// If the place of its row cannot be written.
pub fn cleared(item: &Item) -> Result<Option<Item>> {
    let sealed = SealedData { place: "2026-11-20/100/9999".parse()?, hash: DataHash::new("{}") };
    Ok(payments_store::cleared(item, &sealed))
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
