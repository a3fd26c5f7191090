//! The reason of an operator for an action, which the trail keeps.

use std::str::FromStr;

use maud::{Markup, html};
use payments_http::{Form, Problem, invalid_field};
use payments_model::MAX_REASON;

/// The field of a reason.
pub(super) const REASON: &str = "reason";

/// The longest reason, in bytes of UTF-8.
const MAX_REASON_BYTES: usize = 4 * MAX_REASON;

/// A reason: 1 to 200 characters, some of them letters or digits, without control characters and those that nobody sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reason(String);

impl FromStr for Reason {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let fits = (1..=MAX_REASON).contains(&text.chars().count());
        let is_seen = |it: char| it.is_alphanumeric() && !is_ignorable(it);
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

/// Control characters, ends of a line, and what nobody sees, with the marks that turn a text's direction. Joiners and variation
/// selectors are part of words and emoji.
fn is_forbidden(it: char) -> bool {
    let joins = matches!(it, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}');
    it.is_control() || matches!(it, '\u{2028}' | '\u{2029}') || (is_ignorable(it) && !joins)
}

/// Unicode's property `Default_Ignorable_Code_Point`: characters without a glyph of their own (*DerivedCoreProperties.txt*, 16.0).
fn is_ignorable(it: char) -> bool {
    matches!(it,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
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
