//! The response of a function whose mapping reports batch item failures.
//!
//! Source: *AWS Lambda Developer Guide*, "Configuring partial batch response with DynamoDB and Lambda" and "Implementing
//! partial batch responses" (SQS), under "Success and failure conditions".

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The kinds of responses that a mapping declares (`FunctionResponseTypes`).
#[derive(Deserialize)]
enum ResponseType {
    ReportBatchItemFailures,
}

/// Reads whether a function says which items failed.
pub(crate) fn reports_failures<'n, D: Deserializer<'n>>(from: D) -> Result<bool, D::Error> {
    let types = Vec::deserialize(from)?;
    Ok(types.iter().any(|ResponseType::ReportBatchItemFailures| true))
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BatchResponse {
    /// Everything succeeded.
    Success,
    /// Items of the batch failed: their identifiers.
    Failures(Vec<String>),
    /// The response is invalid, so everything failed.
    Failure(&'static str),
}

/// Reads a response; `known` says whether an identifier is of the batch.
///
/// An empty response (`null`, `{}`, `[]`), and one whose list is missing, null or empty, is a success. An identifier that
/// is missing, null, empty, not a string or unknown fails the whole batch.
pub(crate) fn read(response: &Value, known: impl Fn(&str) -> bool) -> BatchResponse {
    let failures = match response {
        Value::Null => return BatchResponse::Success,
        Value::Array(list) if list.is_empty() => return BatchResponse::Success,
        Value::Object(object) => object.get("batchItemFailures"),
        _ => return BatchResponse::Failure("the response is not an object"),
    };
    let failures = match failures {
        None | Some(Value::Null) => return BatchResponse::Success,
        Some(Value::Array(failures)) if failures.is_empty() => return BatchResponse::Success,
        Some(Value::Array(failures)) => failures,
        Some(_) => return BatchResponse::Failure("batchItemFailures is not a list"),
    };
    let identifier = |failure: &Value| {
        let identifier = failure.get("itemIdentifier")?.as_str()?;
        known(identifier).then(|| identifier.to_owned())
    };
    match failures.iter().map(identifier).collect() {
        Some(identifiers) => BatchResponse::Failures(identifiers),
        None => BatchResponse::Failure("batchItemFailures names an item that is not of the batch"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn success_and_failure_conditions_are_those_of_the_guide() {
        let stranger = BatchResponse::Failure("batchItemFailures names an item that is not of the batch");
        for (response, want) in [
            (json!(null), BatchResponse::Success),
            (json!({}), BatchResponse::Success),
            (json!([]), BatchResponse::Success),
            (json!({"batchItemFailures": null}), BatchResponse::Success),
            (json!({"batchItemFailures": []}), BatchResponse::Success),
            (json!({"state": {}, "other": 1}), BatchResponse::Success),
            (json!({"batchItemFailures": [{"itemIdentifier": "7"}]}), BatchResponse::Failures(vec!["7".into()])),
            (
                json!({"batchItemFailures": [{"itemIdentifier": "8"}, {"itemIdentifier": "7", "more": 1}]}),
                BatchResponse::Failures(vec!["8".into(), "7".into()]),
            ),
            (json!({"batchItemFailures": [{"itemIdentifier": ""}]}), stranger.clone()),
            (json!({"batchItemFailures": [{"itemIdentifier": null}]}), stranger.clone()),
            (json!({"batchItemFailures": [{"itemIdentifier": 7}]}), stranger.clone()),
            (json!({"batchItemFailures": [{"itemIdentifier": "9"}]}), stranger.clone()),
            (json!({"batchItemFailures": [{"itemIdentifier": "7"}, {"itemIdentifier": "9"}]}), stranger.clone()),
            (json!({"batchItemFailures": [{"foo": "7"}]}), stranger.clone()),
            (json!({"batchItemFailures": ["7"]}), stranger),
            (json!({"batchItemFailures": "7"}), BatchResponse::Failure("batchItemFailures is not a list")),
            (json!("ok"), BatchResponse::Failure("the response is not an object")),
        ] {
            let known = |identifier: &str| matches!(identifier, "7" | "8");
            assert_eq!(read(&response, known), want, "{response}");
        }
    }
}
