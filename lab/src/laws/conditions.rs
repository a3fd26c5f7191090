//! The law of conditions: the condition of each transition repeats the head's status, version and due key.

use serde_json::Value;

use crate::facts::heads::is_of_head;
use payments_machine::layers::attributes::text;

/// Checks the condition of a write to a head. A transition's condition repeats the status, version and due key; an
/// amendment's condition repeats the due key. No other law notices a missing due key: a payment that gets another due key
/// also gets another version. Returns the violation, if there is one.
#[must_use]
pub fn check_write(operation: &str, input: &Value) -> Option<String> {
    let values = &input["ExpressionAttributeValues"];
    let is_transition =
        operation == "UpdateItem" && is_of_head(text(&input["Key"], "pk")) && values[":due"].is_object();
    let condition = input["ConditionExpression"].as_str()?;
    let clauses: &[&str] =
        if values[":details"].is_object() { &["due = "] } else { &["#status = ", "version = ", "due = "] };
    let repeats = clauses.iter().all(|clause| condition.contains(clause));
    (is_transition && !repeats).then(|| format!("a transition has the condition {condition}"))
}
