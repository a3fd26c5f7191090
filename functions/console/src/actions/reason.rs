//! An operator's reason, which the dialog asks for and the audit trail keeps.

use std::fmt;
use std::str::FromStr;

use maud::{Markup, html};
use payments_http::{Form, Problem, invalid_field};
use payments_model::MAX_REASON;

/// The name of the field.
pub(super) const REASON: &str = "reason";

/// The longest reason, in bytes of UTF-8.
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

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads the reason. A preview has none.
pub(super) fn read(form: &mut Form) -> Result<Option<Reason>, Problem> {
    let reason = form.take(REASON, MAX_REASON_BYTES)?;
    let parsed = (!reason.is_empty()).then(|| reason.parse()).transpose();
    parsed.map_err(|error: String| invalid_field(REASON, &error))
}

/// The field of a dialog that asks for a reason.
pub(super) fn asked() -> Markup {
    html! { label { "Reason, kept in the audit" input type="text" name=(REASON) maxlength=(MAX_REASON) required; } }
}
