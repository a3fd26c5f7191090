//! Weaknesses: something taken out of the functions' calls, to show that a month finds what is missing.

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::attributes::text;

/// A weakness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Weakness {
    /// Updates of heads lose their conditions.
    Unconditional,
    /// Reads lose their consistency.
    Inconsistent,
    /// The checkpoint of `stream-aggregator` is neither read nor a condition.
    NoCheckpoint,
    /// A transaction of counters loses the counters.
    NoCounters,
    /// Details are written without the condition that there are none.
    OverwritingDetails,
}

impl Weakness {
    /// All weaknesses.
    pub const ALL: [Self; 5] =
        [Self::Unconditional, Self::Inconsistent, Self::NoCheckpoint, Self::NoCounters, Self::OverwritingDetails];

    /// Weakens a call's input. Returns whether anything changed.
    pub(crate) fn weaken(self, operation: &str, input: &mut Value) -> bool {
        let before = input.clone();
        match self {
            Self::Unconditional if operation == "UpdateItem" && text(&input["Key"], "pk").starts_with("ACCT#") => {
                remove_condition(input, "UpdateExpression");
            }
            Self::Inconsistent => {
                remove(input, &["ConsistentRead"]);
                for table in input["RequestItems"].as_object_mut().into_iter().flat_map(|tables| tables.values_mut()) {
                    remove(table, &["ConsistentRead"]);
                }
            }
            Self::NoCheckpoint => {
                if operation == "GetItem" && text(&input["Key"], "pk") == "CHECKPOINT#stream-aggregator" {
                    input["Key"]["sk"] = json!({ "S": "nowhere" });
                }
                if let Some(checkpoint) = actions(input).and_then(|actions| actions.first_mut()) {
                    remove_condition(&mut checkpoint["Update"], "UpdateExpression");
                }
            }
            Self::NoCounters => actions(input).into_iter().for_each(|actions| actions.truncate(1)),
            Self::OverwritingDetails if operation == "PutItem" && text(&input["Item"], "pk").starts_with("PAY#") => {
                remove_condition(input, "none");
            }
            _ => {}
        }
        before != *input
    }
}

fn remove(input: &mut Value, names: &[&str]) {
    let fields = input.as_object_mut().into_iter();
    fields.for_each(|fields| names.iter().for_each(|name| drop(fields.remove(*name))));
}

/// Removes the condition of a write, with the placeholders that only it mentions: DynamoDB rejects unused ones.
fn remove_condition(write: &mut Value, expression: &str) {
    let expression = write[expression].as_str().unwrap_or_default().to_owned();
    remove(write, &["ConditionExpression", "ReturnValuesOnConditionCheckFailure"]);
    for mentioned in ["ExpressionAttributeValues", "ExpressionAttributeNames"] {
        let Some(of_expression) = write.get_mut(mentioned).and_then(Value::as_object_mut) else { continue };
        of_expression.retain(|name, _| mentions(&expression, name));
        if of_expression.is_empty() {
            remove(write, &[mentioned]);
        }
    }
}

/// The actions of a transaction of counters, beginning with the checkpoint's; `None` for other calls.
fn actions(input: &mut Value) -> Option<&mut Vec<Value>> {
    let actions = input.get_mut("TransactItems")?.as_array_mut()?;
    let first = actions.first().map(|action| text(&action["Update"]["Key"], "pk"));
    first.is_some_and(|pk| pk == "CHECKPOINT#stream-aggregator").then_some(actions)
}

/// Whether an expression mentions this placeholder.
fn mentions(expression: &str, name: &str) -> bool {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != ':' && c != '#');
    words.into_iter().any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_goes_with_its_placeholders() {
        let mut input = json!({
            "Key": { "pk": { "S": "ACCT#a" } }, "UpdateExpression": "SET #s = :new", "ConditionExpression": "#s = :old",
            "ExpressionAttributeNames": { "#s": "status" },
            "ExpressionAttributeValues": { ":new": { "S": "a" }, ":old": { "S": "b" } },
        });
        assert!(Weakness::Unconditional.weaken("UpdateItem", &mut input));
        assert!(input.get("ConditionExpression").is_none());
        assert_eq!(input["ExpressionAttributeValues"], json!({ ":new": { "S": "a" } }));
        assert!(!Weakness::Unconditional.weaken("UpdateItem", &mut input));
    }
}
