//! The past: an answer of DynamoDB is made older by undoing the changes since then.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::changes::Change;
use crate::layers::attributes::{Key, key_of};

/// A read: its operation and its input.
pub type Read<'r> = (&'r str, &'r Value);

/// The items that changed since an instant, as they were then; `None` for one that was not there.
#[derive(Debug, Clone)]
pub struct Past(BTreeMap<Key, Option<Value>>);

impl Past {
    /// Undoes changes, the newest first.
    pub fn before(newest_first: impl IntoIterator<Item = Change>) -> Self {
        Self(newest_first.into_iter().map(|change| (change.key, change.before)).collect())
    }

    /// Whether nothing has changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes the answer of a read as old as the past, if the read is of the hot table. A stale read of another table without an
    /// index finds nothing if `others_too`: that is as old as an answer can be. Returns whether the answer changed.
    pub fn age(&self, (operation, input): Read<'_>, hot: &str, others_too: bool, answer: &mut Value) -> bool {
        let before = answer.clone();
        let is_hot = input["TableName"] == hot;
        match operation {
            "BatchGetItem" => {
                for (table, asked) in input["RequestItems"].as_object().into_iter().flatten() {
                    let Some(items) = answer["Responses"][table].as_array_mut() else { continue };
                    match asked["ConsistentRead"] == true {
                        false if table == hot => self.age_batch(asked, items),
                        false if others_too => items.clear(),
                        _ => {}
                    }
                }
            }
            "Query" if is_hot => self.age_query(input, answer),
            "GetItem" if is_hot => self.age_get(input, answer),
            "Query" if others_too && input.get("IndexName").is_none() => {
                (answer["Count"], answer["Items"]) = (json!(0), json!([]));
            }
            "GetItem" if others_too => drop(answer.as_object_mut().and_then(|fields| fields.remove("Item"))),
            _ => {}
        }
        before != *answer
    }

    /// Makes the answer of a Query, of its only page, as old as the past.
    fn age_query(&self, input: &Value, answer: &mut Value) {
        // A page among others stays as it is: what belongs on it is not known here. Of a transaction, one page is all.
        let is_among_others = answer.get("LastEvaluatedKey").is_some() && input["IndexName"] != "transaction";
        if is_among_others || input.get("ExclusiveStartKey").is_some() || input.get("Select").is_some() {
            return;
        }
        let Some(shown) = answer["Items"].as_array() else { return };
        let mut items = shown.clone();
        items.retain(|item| !self.0.contains_key(&key_of(item)));
        items.extend(self.0.values().flatten().filter(|item| selects(input, item)).cloned());
        let sort = match input["IndexName"].as_str() {
            Some(index @ ("unreported" | "moved")) => index,
            Some(_) => "due",
            None => "sk",
        };
        items.sort_by_key(|item| item[sort]["S"].as_str().unwrap_or_default().to_owned());
        if input["Limit"].as_u64().is_some_and(|limit| items.len() as u64 > limit) {
            return;
        }
        (answer["Count"], answer["Items"]) = (json!(items.len()), items.into());
    }

    /// Makes the answer of a GetItem as old as the past.
    fn age_get(&self, input: &Value, answer: &mut Value) {
        let Some(then) = self.0.get(&key_of(&input["Key"])) else { return };
        let Some(fields) = answer.as_object_mut() else { return };
        match then {
            Some(item) => fields.insert("Item".to_owned(), item.clone()),
            None => fields.remove("Item"),
        };
    }

    /// Makes a table's part of the answer of a BatchGetItem as old as the past.
    fn age_batch(&self, asked: &Value, items: &mut Vec<Value>) {
        items.retain(|item| !self.0.contains_key(&key_of(item)));
        let keys = asked["Keys"].as_array().into_iter().flatten().map(key_of);
        items.extend(keys.filter_map(|key| self.0.get(&key).cloned().flatten()));
    }
}

/// Whether a query selects an item. Queries have an equality on the partition and bounds on the sort key, or neither.
fn selects(input: &Value, item: &Value) -> bool {
    let values = &input["ExpressionAttributeValues"];
    let text = |name: &str| values[name]["S"].as_str();
    let within = |sort: &str| {
        let (from, to) = (text(":from").unwrap_or_default(), text(":to"));
        item[sort]["S"].as_str().is_some_and(|key| from <= key && to.is_none_or(|to| key <= to))
    };
    match input["IndexName"].as_str() {
        Some("due") => item["shard"] == values[":shard"] && within("due"),
        Some("transaction") => item["transactionId"] == values[":id"],
        Some("unreported") => item["shard"] == values[":shard"] && item.get("unreported").is_some(),
        Some("moved") => item["pk"] == values[":pk"] && within("moved"),
        _ => {
            let status = values.get(":status").is_none_or(|status| item["status"] == *status);
            item["pk"] == values[":pk"] && within("sk") && status
        }
    }
}
