//! Invocations as Lambda makes them: JSON in, JSON out, a deadline, and errors as text.

use chrono::{DateTime, Utc};
use lambda_runtime::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Returns the context of an invocation that has until `deadline`.
pub fn context(deadline: DateTime<Utc>) -> Context {
    let mut context = Context::default();
    context.deadline = u64::try_from(deadline.timestamp_millis()).unwrap_or(0);
    context
}

pub(crate) fn read<T: DeserializeOwned>(event: Value) -> Result<T, String> {
    serde_json::from_value(event).map_err(|error| error.to_string())
}

pub(crate) fn written(answer: &impl Serialize) -> Result<Value, String> {
    serde_json::to_value(answer).map_err(|error| error.to_string())
}
