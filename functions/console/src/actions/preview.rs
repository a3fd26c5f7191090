//! What a preview shows.

use maud::Markup;

/// What an action would do.
pub(super) struct Preview {
    /// What will be touched.
    pub(super) shown: Markup,
    /// What the button says; none if there is nothing to do.
    pub(super) button: Option<String>,
}

/// A number of things, in words.
pub(super) fn counted(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}
