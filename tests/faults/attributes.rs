//! Attributes of items in DynamoDB's JSON.

use serde_json::Value;

/// A partition and a sort key.
pub(crate) type Key = (String, String);

/// The key of an item, an index entry or a key.
pub(crate) fn key_of(item: &Value) -> Key {
    let text = |name: &str| item[name]["S"].as_str().unwrap_or_default().to_owned();
    (text("pk"), text("sk"))
}

/// A text attribute; empty if it is missing.
pub(crate) fn text<'v>(item: &'v Value, name: &str) -> &'v str {
    item[name]["S"].as_str().unwrap_or_default()
}

/// A number attribute; 0 if it is missing.
pub(crate) fn number(item: &Value, name: &str) -> u64 {
    item[name]["N"].as_str().and_then(|number| number.parse().ok()).unwrap_or(0)
}
