//! The reason of an operator for an action, which the trail keeps.

use std::str::FromStr;

use maud::{Markup, html};
use payments_http::{Form, Problem, invalid_field};
use payments_model::MAX_REASON;

/// The field of a reason.
pub(super) const REASON: &str = "reason";

/// The longest reason, in bytes of UTF-8.
const MAX_REASON_BYTES: usize = 4 * MAX_REASON;

/// A reason: 1 to 200 characters, some of them letters or digits, without control characters and those that turn the direction of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reason(String);

impl FromStr for Reason {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let fits = (1..=MAX_REASON).contains(&text.chars().count());
        // The fillers of Hangul are letters that nobody sees.
        let is_seen =
            |it: char| it.is_alphanumeric() && !matches!(it, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}');
        if fits && text.chars().any(is_seen) && !text.chars().any(is_forbidden) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("a reason has 1 to {MAX_REASON} characters, on one line, that people can read"))
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

/// Control characters, and marks of a direction or of a line's end.
fn is_forbidden(it: char) -> bool {
    it.is_control()
        || matches!(it, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
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
