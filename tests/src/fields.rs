//! Assertions about fields of a JSON value.

use serde_json::Value;

/// Asserts that a value has these fields, whatever else it has.
#[track_caller]
pub fn assert_has(value: &Value, fields: &Value) {
    for (name, want) in fields.as_object().into_iter().flatten() {
        assert_eq!(&value[name], want, "{name} of {value}");
    }
}
