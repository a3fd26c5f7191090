//! The layer that traces calls as a digest: the same seed makes the same trace, in any process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use payments_boot::Clock;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::call::{Answer, Call, Layer, Next};

/// The trace so far. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Trace(Arc<Mutex<Traced>>);

#[derive(Debug, Default)]
struct Traced {
    digest: Sha256,
    calls: BTreeMap<String, u64>,
}

/// The layer of one caller: a function in one of its sandboxes.
pub struct TraceOf {
    trace: Trace,
    clock: Clock,
    function: &'static str,
    sandbox: usize,
}

impl Trace {
    /// Returns the layer of a caller.
    pub fn for_function(&self, clock: &Clock, function: &'static str, sandbox: usize) -> TraceOf {
        TraceOf { trace: self.clone(), clock: clock.clone(), function, sandbox }
    }

    /// Returns the numbers of calls, by function and operation.
    pub fn calls(&self) -> BTreeMap<String, u64> {
        self.traced().calls.clone()
    }

    fn traced(&self) -> MutexGuard<'_, Traced> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what happened at an instant.
    fn add(&self, at: DateTime<Utc>, what: &str, values: &[&Value]) {
        let mut text = format!("{} {what}", at.timestamp_millis()).into_bytes();
        values.iter().for_each(|value| write(value, &mut text));
        let mut traced = self.traced();
        traced.digest.update(text);
        *traced.calls.entry(what.to_owned()).or_default() += 1;
    }

    /// Returns its first 16 digits.
    pub fn digest(&self) -> String {
        let digest = self.traced().digest.clone().finalize();
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

#[async_trait]
impl Layer for TraceOf {
    async fn carry(&self, call: Call, next: Next) -> Answer {
        let (what, input) = (format!("{} {}", self.function, call.operation), call.shared_input());
        // The description of a table has times and ids that are this machine's, and not the seed's.
        let is_described = call.operation == "DescribeTable";
        let answer = next.send(call).await;
        let reply = answer.as_ref().ok();
        let status = reply.map_or(0, |reply| reply.status);
        let told = reply.filter(|_| !is_described).map_or(&Value::Null, |reply| reply.json());
        self.trace.add(self.clock.instant(), &what, &[&json!([self.sandbox, status]), &input, told]);
        answer
    }
}

/// Writes canonical JSON: the SDK's maps have no order.
fn write(value: &Value, text: &mut Vec<u8>) {
    match value {
        Value::Object(fields) => {
            text.push(b'{');
            if fields.keys().is_sorted() {
                fields.iter().for_each(|field| write_field(field, text));
            } else {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by_key(|(name, _)| *name);
                fields.into_iter().for_each(|field| write_field(field, text));
            }
            text.push(b'}');
        }
        Value::Array(values) => {
            text.push(b'[');
            for value in values {
                write(value, text);
                text.push(b',');
            }
            text.push(b']');
        }
        // A buffer in memory takes everything.
        other => drop(serde_json::to_writer(text, other)),
    }
}

fn write_field((name, value): (&String, &Value), text: &mut Vec<u8>) {
    text.extend_from_slice(name.as_bytes());
    text.push(b':');
    write(value, text);
    text.push(b',');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_fields_changes_nothing_and_all_else_does() {
        let at = DateTime::UNIX_EPOCH;
        let digest = |what: &str, text: &str| {
            let trace = Trace::default();
            trace.add(at, what, &[&serde_json::from_str(text).unwrap()]);
            trace.digest()
        };
        let one = digest("a", r#"{"b":[1,{"x":"y","z":null}],"a":2}"#);
        assert_eq!(one, digest("a", r#"{"a":2,"b":[1,{"z":null,"x":"y"}]}"#));
        assert_ne!(one, digest("b", r#"{"a":2,"b":[1,{"z":null,"x":"y"}]}"#));
        assert_ne!(one, digest("a", r#"{"a":2,"b":[{"z":null,"x":"y"},1]}"#));
        assert_ne!(digest("a", &json!(1).to_string()), digest("a", &json!(2).to_string()));
    }
}
