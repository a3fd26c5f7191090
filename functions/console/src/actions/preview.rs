//! The preview of an action.

use maud::Markup;

/// The effect of an action, before it is performed.
pub(super) struct Preview {
    /// The things that the action will change.
    pub(super) shown: Markup,
    /// The buttons; `None` if there is nothing to do.
    pub(super) buttons: Option<Buttons>,
}

/// The two buttons below a preview.
pub(super) struct Buttons {
    /// The text of the one that acts: a verb and a number.
    pub(super) act: String,
    /// The text of the one that does nothing: `Keep it`.
    pub(super) keep: &'static str,
    /// Whether nothing takes the action back.
    pub(super) is_final: bool,
}

/// A number of things, in words.
pub(super) fn counted(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}
