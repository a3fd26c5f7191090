//! Weakened handlers: the real ones, with something taken out of their calls, to show that the checks notice.

use serde_json::{Value, json};

use crate::attributes::text;

/// How a handler's calls are weakened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weakness {
    /// Updates lose their conditions.
    Unconditional,
    /// Reads lose their consistency.
    Inconsistent,
    /// The checkpoint of `stream-aggregator` is neither read nor a condition.
    NoCheckpoint,
    /// A transaction of counters loses the checkpoint, as if that were written afterwards.
    CountersFirst,
    /// A transaction of counters loses the counters, as if those were written afterwards.
    CheckpointFirst,
}

impl Weakness {
    /// Weakens a call's input.
    pub(crate) fn weaken(self, input: &mut Value) {
        match self {
            Self::Unconditional => remove_condition(input),
            Self::Inconsistent => {
                remove(input, &["ConsistentRead"]);
                for table in input["RequestItems"].as_object_mut().into_iter().flat_map(|tables| tables.values_mut()) {
                    remove(table, &["ConsistentRead"]);
                }
            }
            Self::NoCheckpoint => {
                if text(&input["Key"], "pk").starts_with("CHECKPOINT#") {
                    input["Key"]["sk"] = json!({ "S": "nowhere" });
                }
                if let Some(checkpoint) = actions(input).and_then(|actions| actions.first_mut()) {
                    remove_condition(&mut checkpoint["Update"]);
                }
            }
            Self::CountersFirst => actions(input).into_iter().for_each(|actions| drop(actions.remove(0))),
            Self::CheckpointFirst => actions(input).into_iter().for_each(|actions| actions.truncate(1)),
        }
    }
}

fn remove(input: &mut Value, names: &[&str]) {
    let fields = input.as_object_mut().into_iter();
    fields.for_each(|fields| names.iter().for_each(|name| drop(fields.remove(*name))));
}

/// Removes the condition of an update, with the placeholders that only it mentions: DynamoDB rejects unused ones.
fn remove_condition(update: &mut Value) {
    let Some(expression) = update["UpdateExpression"].as_str().map(str::to_owned) else { return };
    remove(update, &["ConditionExpression", "ReturnValuesOnConditionCheckFailure"]);
    for mentioned in ["ExpressionAttributeValues", "ExpressionAttributeNames"] {
        let Some(of_expression) = update.get_mut(mentioned).and_then(Value::as_object_mut) else { continue };
        of_expression.retain(|name, _| mentions(&expression, name));
        if of_expression.is_empty() {
            remove(update, &[mentioned]);
        }
    }
}

/// The actions of a transaction of counters, beginning with the checkpoint's; `None` for other calls.
fn actions(input: &mut Value) -> Option<&mut Vec<Value>> {
    let actions = input.get_mut("TransactItems")?.as_array_mut()?;
    let first = actions.first().map(|action| text(&action["Update"]["Key"], "pk"));
    first.is_some_and(|pk| pk.starts_with("CHECKPOINT#")).then_some(actions)
}

/// Whether an expression mentions this placeholder.
fn mentions(expression: &str, name: &str) -> bool {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != ':' && c != '#');
    words.into_iter().any(|word| word == name)
}
