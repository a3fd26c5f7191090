//! The trace: a digest of everything that went over the network. The same seed makes the same trace, in any process.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The trace so far. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace(Arc<Mutex<Sha256>>);

impl Trace {
    /// Adds what happened at an instant.
    pub(crate) fn add(&self, at: DateTime<Utc>, what: &str, values: &[&Value]) {
        let mut text = format!("{} {what}", at.timestamp_millis()).into_bytes();
        values.iter().for_each(|value| write(value, &mut text));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).update(text);
    }

    /// Returns its first 16 digits.
    pub(crate) fn digest(&self) -> String {
        let digest = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().finalize();
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
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
