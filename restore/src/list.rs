//! Lists that the AWS CLI prints: whole ones only.

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::call::Call;
use crate::printed::sample;

/// The fields that say that more follows.
const CONTINUATIONS: [&str; 5] =
    ["NextToken", "LastEvaluatedKey", "NextContinuationToken", "NextMarker", "IsTruncated"];

/// Returns a list of an answer, if nothing follows it.
pub(crate) fn whole<'a>(answer: &'a Value, name: &str) -> Option<&'a Vec<Value>> {
    let more = CONTINUATIONS.iter().any(|field| !matches!(answer[*field], Value::Null | Value::Bool(false)));
    answer[name].as_array().filter(|_| !more)
}

/// Returns the list that a command must print.
pub(crate) fn list<'a>(call: &Call, answer: &'a Value, name: &str) -> Result<&'a [Value]> {
    let found = whole(answer, name);
    ensure!(found.is_some(), "{call}\nprinted {}, expected the whole list {name}", sample(&answer.to_string()));
    Ok(found.map(Vec::as_slice).unwrap_or_default())
}

/// Whether an answer has the whole audit trail of a month.
pub(crate) fn is_trail(answer: &Value, partition: &str) -> bool {
    whole(answer, "Items").is_some_and(|items| items.iter().all(|item| item["pk"]["S"] == partition))
}
