//! Weaknesses: something taken out of the functions' calls, to show that a month finds what is missing.

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::attributes::text;
use crate::weakening::{CHECKPOINTS, counting, remove_condition, remove_consistency};

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
    pub fn weaken(self, operation: &str, input: &mut Value) -> bool {
        let before = input.clone();
        match self {
            Self::Unconditional if operation == "UpdateItem" && text(&input["Key"], "pk").starts_with("ACCT#") => {
                remove_condition(input);
            }
            Self::Inconsistent => remove_consistency(input),
            Self::NoCheckpoint => {
                if operation == "GetItem" && text(&input["Key"], "pk") == CHECKPOINTS {
                    input["Key"]["sk"] = json!({ "S": "nowhere" });
                }
                if let Some(checkpoint) = counting(input).and_then(|actions| actions.first_mut()) {
                    remove_condition(&mut checkpoint["Update"]);
                }
            }
            Self::NoCounters => counting(input).into_iter().for_each(|actions| actions.truncate(1)),
            Self::OverwritingDetails if operation == "PutItem" && text(&input["Item"], "pk").starts_with("PAY#") => {
                remove_condition(input);
            }
            _ => {}
        }
        before != *input
    }
}
