//! The preview of an action.

use maud::Markup;

/// The effect of an action, before it is performed.
pub(super) struct Preview {
    /// The things that the action will change.
    pub(super) shown: Markup,
    /// The text of the button; `None` if there is nothing to do.
    pub(super) button: Option<String>,
}

/// A number of things, in words.
pub(super) fn counted(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}
