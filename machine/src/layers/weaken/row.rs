//! The form of a weakness of calls, and the call that it is made in.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::super::call::Reply;
use crate::engine::Direct;
use crate::layers::attributes::{is_of_head, text};

/// Returns a row that changes inputs.
pub(super) const fn input(functions: &'static [&'static str], input: fn(&mut Seen<'_>)) -> Row {
    Row { functions, input, ..NOTHING }
}

/// Returns a row that swallows calls.
pub(super) const fn swallows(functions: &'static [&'static str], swallows: fn(&str, &Value) -> bool) -> Row {
    Row { functions, swallows, ..NOTHING }
}

/// Returns a row that changes replies.
pub(super) const fn answer(functions: &'static [&'static str], answer: fn(&str, &mut Reply)) -> Row {
    Row { functions, answer, ..NOTHING }
}

/// Changes of calls by a weakness.
pub(super) struct Row {
    /// The functions with the weakness; none for all functions.
    pub(super) functions: &'static [&'static str],
    /// Changes an input.
    pub(super) input: fn(&mut Seen<'_>),
    /// Whether a call, of this operation and input, can be swallowed.
    pub(super) swallows: fn(&str, &Value) -> bool,
    /// Changes the reply to an operation.
    pub(super) answer: fn(&str, &mut Reply),
}

/// A row that changes nothing of calls.
const NOTHING: Row = Row { functions: &[], input: |_| {}, swallows: |_, _| false, answer: |_, _| {} };

/// A call that is weakened.
pub(super) struct Seen<'c> {
    pub(super) operation: &'c str,
    pub(super) input: &'c mut Value,
    pub(super) now: DateTime<Utc>,
    pub(super) engine: &'c Direct,
    /// The part that was taken out of the call, to be done later.
    pub(super) held: Option<Held>,
}

/// The part that was taken out of a call.
pub(super) enum Held {
    /// A segment of the log.
    Segment(Value),
    /// An update of reserved claims.
    Reservation(Value),
}

impl Seen<'_> {
    /// Whether it is this operation, and its item or key is such.
    pub(super) fn is(&self, operation: &str, name: &str, is_such: impl Fn(&Value) -> bool) -> bool {
        self.operation == operation && is_such(&self.input[name])
    }

    /// Changes an update of a head.
    pub(super) fn on_head_update(&mut self, change: impl Fn(&mut Value)) {
        if self.is("UpdateItem", "Key", |key| is_of_head(text(key, "pk"))) {
            change(self.input);
        }
    }

    /// Returns a text that a query compares with.
    pub(super) fn bound(&self, name: &str) -> Option<String> {
        let value = self.input["ExpressionAttributeValues"][name]["S"].as_str();
        value.filter(|_| self.operation == "Query").map(str::to_owned)
    }
}
