//! The partition keys that a call to DynamoDB touches, in tables and in their indexes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::layers::attributes::{Key, key_of, text};

/// A partition key that a call touches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Touched {
    /// A table, or `table/index`.
    pub(super) place: String,
    /// The partition key there.
    pub(super) key: String,
}

/// Returns what a call touches. `shards` has the shards of the heads: an update does not repeat them.
pub(super) fn touched(input: &Value, shards: &BTreeMap<Key, String>) -> Vec<Touched> {
    let mut found = Vec::new();
    of_action(input, shards, &mut found);
    for action in input["TransactItems"].as_array().into_iter().flatten() {
        for kind in action.as_object().into_iter().flat_map(|kinds| kinds.values()) {
            of_action(kind, shards, &mut found);
        }
    }
    for (table, asked) in input["RequestItems"].as_object().into_iter().flatten() {
        for key in asked["Keys"].as_array().into_iter().flatten() {
            of_action(&json!({ "TableName": table, "Key": key }), shards, &mut found);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn of_action(action: &Value, shards: &BTreeMap<Key, String>, found: &mut Vec<Touched>) {
    let table = action["TableName"].as_str().unwrap_or_default();
    let mut add = |place: String, key: &str| found.push(Touched { place, key: key.to_owned() });
    if action.get("KeyConditionExpression").is_some() {
        let index = action["IndexName"].as_str();
        let place = index.map_or_else(|| table.to_owned(), |index| format!("{table}/{index}"));
        add(place, partition_key(action));
        return;
    }
    let item = if action["Item"].is_object() { &action["Item"] } else { &action["Key"] };
    let pk = text(item, "pk");
    if pk.is_empty() {
        return;
    }
    add(table.to_owned(), pk);
    let writes = action.get("Item").is_some()
        || action.get("UpdateExpression").is_some()
        || action.get("ConditionExpression").is_some();
    if !writes || !pk.starts_with("ACCT#") {
        return;
    }
    let values = &action["ExpressionAttributeValues"];
    if let Some(shard) = shards.get(&key_of(item)).map(String::as_str).or(item["shard"]["N"].as_str()) {
        // A change of status moves the entry; a redrive rewrites it.
        add(format!("{table}/due"), shard);
        if !values[":unreported"].is_null() {
            add(format!("{table}/unreported"), shard);
        }
    }
    // An amendment moves the entry, or takes it away.
    if item["moved"].is_object() || values[":details"].is_object() {
        add(format!("{table}/moved"), pk);
    }
    let transaction = values[":transactionId"]["S"].as_str().or(item["transactionId"]["S"].as_str());
    transaction.into_iter().for_each(|id| add(format!("{table}/transaction"), id));
}

/// Returns the partition key of a query.
pub fn partition_key(input: &Value) -> &str {
    let values = &input["ExpressionAttributeValues"];
    let value = [":pk", ":shard", ":id"].into_iter().find_map(|name| values.get(name));
    value.and_then(|value| value["S"].as_str().or(value["N"].as_str())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(input: &Value) -> Vec<(String, String)> {
        let shards = BTreeMap::from([(("ACCT#a".to_owned(), "1".to_owned()), "7".to_owned())]);
        touched(input, &shards).into_iter().map(|touched| (touched.place, touched.key)).collect()
    }

    #[test]
    fn a_write_touches_its_table_and_its_indexes() {
        let of = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(place, key)| ((*place).to_owned(), (*key).to_owned())).collect()
        };
        let key = json!({ "pk": { "S": "ACCT#a" }, "sk": { "S": "1" } });
        assert_eq!(places(&json!({ "TableName": "payments", "Key": key })), of(&[("payments", "ACCT#a")]));
        let settle = json!({
            "TableName": "payments", "Key": key, "UpdateExpression": "SET x",
            "ExpressionAttributeValues": { ":unreported": { "S": "u" }, ":transactionId": { "S": "T" } },
        });
        assert_eq!(
            places(&settle),
            of(&[
                ("payments", "ACCT#a"),
                ("payments/due", "7"),
                ("payments/transaction", "T"),
                ("payments/unreported", "7"),
            ])
        );
        let query = json!({ "TableName": "payments", "IndexName": "due", "KeyConditionExpression": "x",
            "ExpressionAttributeValues": { ":shard": { "N": "3" } } });
        assert_eq!(places(&query), of(&[("payments/due", "3")]));
        let batch = json!({ "RequestItems": { "payments": { "Keys": [key, key] } } });
        assert_eq!(places(&batch), of(&[("payments", "ACCT#a")]));
        let counts = json!({ "pk": { "S": "COUNTS#1" }, "sk": { "S": "d" } });
        let transaction = json!({ "TransactItems": [
            { "Update": { "TableName": "payments", "Key": counts, "UpdateExpression": "ADD x" } },
        ] });
        assert_eq!(places(&transaction), of(&[("payments", "COUNTS#1")]));
    }
}
