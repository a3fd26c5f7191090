//! The reason of an operator for an action, which the trail keeps.

use std::str::FromStr;

use maud::{Markup, html};
use payments_http::{Form, Problem, invalid_field};

/// The field of a reason.
pub(super) const REASON: &str = "reason";

/// The longest reason, in characters, and in bytes of UTF-8.
const MAX_REASON: usize = 200;
const MAX_REASON_BYTES: usize = 4 * MAX_REASON;

/// A reason: 1 to 200 characters without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reason(String);

impl FromStr for Reason {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let fits = (1..=MAX_REASON).contains(&text.chars().count());
        if fits && !text.chars().any(char::is_control) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("a reason has 1 to {MAX_REASON} characters, on one line"))
    }
}

impl Reason {
    /// Reads the reason, if there is one.
    pub(super) fn read(form: &mut Form) -> Result<Option<Self>, Problem> {
        let reason = form.take(REASON, MAX_REASON_BYTES)?;
        let parsed = (!reason.is_empty()).then(|| reason.parse()).transpose();
        parsed.map_err(|error: String| invalid_field(REASON, &error))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The field in which a dialog asks for a reason.
pub(super) fn asked(is_required: bool) -> Markup {
    html! {
        label {
            "Reason, kept in the audit" @if !is_required { " (optional)" }
            input type="text" name=(REASON) maxlength=(MAX_REASON) required[is_required];
        }
    }
}
