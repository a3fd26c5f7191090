//! Assertions that many tests make, of an error's text and of some fields of a value.

use serde_json::Value;

/// Asserts that something failed, with this text in the error or in a cause of it.
#[track_caller]
pub fn assert_fails<T>(done: anyhow::Result<T>, text: &str) {
    let error = done.err().map(|error| format!("{error:#}"));
    assert!(error.as_ref().is_some_and(|error| error.contains(text)), "not {text:?}, but {error:?}");
}

/// Asserts that a value has these fields, whatever else it has. A field that is null may be missing.
#[track_caller]
pub fn assert_has(value: &Value, fields: &Value) {
    for (name, want) in fields.as_object().into_iter().flatten() {
        assert_eq!(&value[name], want, "{name} of {value}");
    }
}
