//! Attributes of items in DynamoDB's JSON.

use serde_json::Value;

/// A primary key: partition and sort key.
pub type Key = (String, String);

/// Returns the key of an item, of an index entry or of a key.
#[must_use]
pub fn key_of(item: &Value) -> Key {
    (text(item, "pk").to_owned(), text(item, "sk").to_owned())
}

/// Returns a text; empty if there is none.
#[must_use]
pub fn text<'v>(item: &'v Value, name: &str) -> &'v str {
    item[name]["S"].as_str().unwrap_or_default()
}

/// Returns a whole number; 0 if there is none.
#[must_use]
pub fn number(item: &Value, name: &str) -> u64 {
    item[name]["N"].as_str().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Whether a partition key is that of heads.
#[must_use]
pub fn is_of_head(pk: &str) -> bool {
    pk.starts_with("ACCT#")
}

/// Removes fields.
pub fn remove(input: &mut Value, names: &[&str]) {
    let fields = input.as_object_mut().into_iter();
    fields.for_each(|fields| names.iter().for_each(|name| drop(fields.remove(*name))));
}
