//! The preview of an action.

use maud::{Markup, html};
use payments_store::ActionName;

use crate::actions::{Action, CLOSE, title};
use crate::panel::hidden;

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

/// The dialog of a preview: with a form that confirms the action under this name, if there is something to do.
pub(super) fn dialog(preview: Preview, asked: &Action, action: &Action, name: ActionName) -> Markup {
    let Some(buttons) = preview.buttons else {
        return html! {
            (title(&asked.title()))
            div class="body" { (preview.shown) p { b { "There is nothing to do." } } }
            div class="foot" { (CLOSE) }
        };
    };
    html! {
        form data-action=(action.name()) {
            (title(&format!("{}?", action.title())))
            div class="body" {
                (preview.shown)
                @for (name, value) in action.fields() { (hidden(name, &value)) }
                (hidden("at", &name.previewed_at.to_string()))
                (hidden("id", &name.id.to_string()))
                (hidden("step", "do"))
            }
            div class="foot" {
                button type="button" data-close { (buttons.keep) }
                button class=(if buttons.is_final { "fill" } else { "primary" }) { (buttons.act) }
            }
        }
    }
}

/// A number of things, in words.
pub(super) fn counted(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}
