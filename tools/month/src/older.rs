//! The release before this one, made of this one's calls.
//!
//! It settles in the hot table alone, lets nothing expire, and archives settled payments in the next night.

use serde_json::Value;

use crate::attributes::text;
use crate::laws::is_of_head;
use crate::weakening::{remove, remove_clause};

/// Makes a call of a function one of the older release. Returns whether that makes it at all.
pub(crate) fn as_older(function: &str, operation: &str, input: &mut Value) -> bool {
    let is_of = |item: &str| is_of_head(text(&input[item], "pk"));
    match (function, operation) {
        ("settle", "PutItem") if is_of("Item") => return false,
        ("settle" | "report", "UpdateItem") if is_of("Key") => {
            let updated = input["UpdateExpression"].as_str().unwrap_or_default();
            let updated = updated.replace(", inHistory = :inHistory", "").replace(" SET expires_at = :expires", "");
            input["UpdateExpression"] = updated.into();
            remove_clause(input, " AND inHistory = :inHistory");
            remove(&mut input["ExpressionAttributeValues"], &[":inHistory", ":expires"]);
        }
        _ => {}
    }
    true
}
