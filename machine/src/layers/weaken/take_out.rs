//! Taking something out of a call's input, to show that a checker notices.

use serde_json::Value;

use crate::layers::attributes::{remove, text};

/// The partition of the aggregator's checkpoints.
pub(super) const CHECKPOINTS: &str = "CHECKPOINT#counts";

/// Removes the consistency of a read.
pub(super) fn remove_consistency(input: &mut Value) {
    remove(input, &["ConsistentRead"]);
    for table in input["RequestItems"].as_object_mut().into_iter().flat_map(|tables| tables.values_mut()) {
        remove(table, &["ConsistentRead"]);
    }
}

/// Removes the condition of a write, with the placeholders that only it mentions: DynamoDB rejects unused ones.
pub(super) fn remove_condition(write: &mut Value) {
    let expression = write["UpdateExpression"].as_str().unwrap_or_default().to_owned();
    remove(write, &["ConditionExpression", "ReturnValuesOnConditionCheckFailure"]);
    keep_mentioned(write, &expression);
}

/// Removes what an update adds, with the placeholders that only it mentions. Its condition stays.
pub(super) fn remove_added(write: &mut Value) {
    let update = write["UpdateExpression"].as_str().unwrap_or_default();
    let (update, _) = update.split_once(" ADD ").unwrap_or((update, ""));
    let left = format!("{update} {}", write["ConditionExpression"].as_str().unwrap_or_default());
    write["UpdateExpression"] = update.to_owned().into();
    keep_mentioned(write, &left);
}

/// Keeps the placeholders that an expression mentions.
fn keep_mentioned(write: &mut Value, expression: &str) {
    for mentioned in ["ExpressionAttributeValues", "ExpressionAttributeNames"] {
        let Some(of_expression) = write.get_mut(mentioned).and_then(Value::as_object_mut) else { continue };
        of_expression.retain(|name, _| mentions(expression, name));
        if of_expression.is_empty() {
            remove(write, &[mentioned]);
        }
    }
}

/// Removes a part of the condition of a write, with the placeholders that only it mentions.
pub(super) fn remove_clause(write: &mut Value, clause: &str) {
    let Some(condition) = write["ConditionExpression"].as_str().filter(|condition| condition.contains(clause)) else {
        return;
    };
    let condition = condition.replace(clause, "");
    let left = format!("{condition} {}", write["UpdateExpression"].as_str().unwrap_or_default());
    write["ConditionExpression"] = condition.into();
    keep_mentioned(write, &left);
}

/// Returns the actions of a transaction of counters, beginning with the checkpoint's; `None` for other calls.
pub(super) fn counting(input: &mut Value) -> Option<&mut Vec<Value>> {
    let actions = input.get_mut("TransactItems")?.as_array_mut()?;
    let first = actions.first().map(|action| text(&action["Update"]["Key"], "pk"));
    first.is_some_and(|pk| pk == CHECKPOINTS).then_some(actions)
}

/// Whether an action of a transaction is about the log.
pub(super) fn is_of_log(action: &Value) -> bool {
    action.as_object().into_iter().flat_map(serde_json::Map::values).any(|write| write["TableName"] == "payments-log")
}

/// Whether an expression mentions this placeholder.
fn mentions(expression: &str, name: &str) -> bool {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != ':' && c != '#');
    words.into_iter().any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_goes_with_its_placeholders() {
        let mut input = json!({
            "Key": { "pk": { "S": "ACCT#a" } }, "UpdateExpression": "SET #s = :new", "ConditionExpression": "#s = :old",
            "ExpressionAttributeNames": { "#s": "status" },
            "ExpressionAttributeValues": { ":new": { "S": "a" }, ":old": { "S": "b" } },
        });
        remove_condition(&mut input);
        assert!(input.get("ConditionExpression").is_none());
        assert_eq!(input["ExpressionAttributeNames"], json!({ "#s": "status" }));
        assert_eq!(input["ExpressionAttributeValues"], json!({ ":new": { "S": "a" } }));
        let mut clause = json!({
            "ConditionExpression": "a = :a AND due = :due", "ExpressionAttributeValues": { ":a": 1, ":due": 2 },
        });
        remove_clause(&mut clause, " AND due = :due");
        assert_eq!(clause, json!({ "ConditionExpression": "a = :a", "ExpressionAttributeValues": { ":a": 1 } }));
        let mut added = json!({
            "ConditionExpression": "#0 <= :room", "UpdateExpression": "SET e = :e ADD #0 :0, #1 :1",
            "ExpressionAttributeNames": { "#0": "payments", "#1": "EUR" },
            "ExpressionAttributeValues": { ":room": 1, ":e": 2, ":0": 3, ":1": 4 },
        });
        remove_added(&mut added);
        assert_eq!(added["UpdateExpression"], "SET e = :e");
        assert_eq!(added["ExpressionAttributeNames"], json!({ "#0": "payments" }));
        assert_eq!(added["ExpressionAttributeValues"], json!({ ":room": 1, ":e": 2 }));
        let without = input.clone();
        remove_condition(&mut input);
        assert_eq!(input, without);
    }
}
