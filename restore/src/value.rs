//! Values of answers: compared with the wanted ones, and shortened for the operator.

use payments_model::UtcSecond;
use serde_json::Value;

/// The longest value that is shown as a whole, in characters: more than two lines of a terminal.
pub(crate) const LONGEST: usize = 200;

/// A value, or its beginning.
pub(crate) fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST).chain(['…']).collect()
}

/// Whether a value is the wanted one, or has all that this has.
pub(crate) fn includes(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| found.get(name).is_some_and(|it| includes(it, wanted)))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            wanted.iter().all(|wanted| found.iter().any(|it| includes(it, wanted)))
        }
        // 0 and 0.0 are the same.
        (Value::Number(found), Value::Number(wanted)) => found.as_f64() == wanted.as_f64(),
        _ => found == wanted,
    }
}

/// An instant of the AWS CLI: version 1 prints seconds, version 2 a text.
pub(crate) fn seconds(value: &Value) -> Option<i64> {
    let text = value.as_str().and_then(|text| chrono::DateTime::parse_from_rfc3339(text).ok());
    text.map(|at| at.timestamp()).or_else(|| value.as_number()?.to_string().split('.').next()?.parse().ok())
}

/// Whether a table was restored from another one, which an ARN names, to an instant.
pub(crate) fn is_restored(table: &Value, source: &Value, to: Option<UtcSecond>) -> bool {
    let summary = &table["RestoreSummary"];
    let at = seconds(&summary["RestoreDateTime"]);
    summary["SourceTableArn"] == *source && to.is_none_or(|to| at == Some(to.as_chrono().timestamp()))
}
