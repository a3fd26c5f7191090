//! Invocations as Lambda makes them: JSON in, JSON out, a deadline, and errors as text.

use chrono::{DateTime, Utc};
use futures::future::{BoxFuture, LocalBoxFuture};
use lambda_runtime::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A run of a function. It is boxed, so that the functions' code is compiled in the crate of their handlers and not again in each
/// that awaits it.
pub type Run<'f, Outcome> = BoxFuture<'f, Outcome>;

/// A [`Run`] that stays on its thread: the compiler cannot prove that of a schedule to be `Send`.
pub type LocalRun<'f, Outcome> = LocalBoxFuture<'f, Outcome>;

/// Returns the context of an invocation that has until `deadline`.
pub fn context(deadline: DateTime<Utc>) -> Context {
    let mut context = Context::default();
    context.deadline = u64::try_from(deadline.timestamp_millis()).unwrap_or(0);
    context
}

/// Reads an event.
pub fn read<T: DeserializeOwned>(event: Value) -> Result<T, String> {
    serde_json::from_value(event).map_err(|error| error.to_string())
}

/// Writes a response or an outcome.
pub fn written(answer: &impl Serialize) -> Result<Value, String> {
    serde_json::to_value(answer).map_err(|error| error.to_string())
}
