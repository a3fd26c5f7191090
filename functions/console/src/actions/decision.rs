//! The dialogs of two persons: the notice of the first, what waits, and the plan on which the second decides.

use maud::{Markup, html};
use payments_model::{ActionName, Person};
use payments_store::{Asked, Standing, WAITS};

use crate::actions::dialog::{CLOSE, Named, title};
use crate::actions::preview::{Buttons, Preview};
use crate::actions::reason::REASON;
use crate::actions::switch::freed::Now;
use crate::html::{fact, link, person_of};
use crate::panel::hidden;
use crate::times::Times;
use crate::told::{self, standing};

/// The preview of an action that needs a second person: its button asks.
pub(super) fn noticed(shown: &Markup, buttons: &Buttons) -> Preview {
    let shown = html! {
        div class="notice" {
            h3 { "A second person must agree" }
            p { "Nothing happens until then. It waits for " (WAITS.num_hours()) " hours in Audit, for somebody who may approve and is not you." }
        }
        (shown)
    };
    let mut act = buttons.act.clone();
    act.get_mut(..1).into_iter().for_each(str::make_ascii_lowercase);
    Preview { shown, buttons: Some(Buttons { act: format!("Ask to {act}"), keep: buttons.keep, is_final: false }) }
}

/// The dialog of an action that has no outcome.
pub(super) fn stands(action: &Named, asked: &Asked, times: Times) -> Markup {
    html! {
        (title(&action.title))
        div class="body" {
            (state(action, asked, times))
            p { (entry(asked.intent.name)) }
        }
        div class="foot" { (CLOSE) }
    }
}

/// The dialog of the second person.
pub(super) fn looked(action: &Named, asked: &Asked, (person, now): (&Person, Option<&Now>), times: Times) -> Markup {
    let is_beyond = now.is_some_and(|now| now.is_beyond);
    let waits = matches!(asked.standing(times.now), Standing::Waits(_));
    let may_decide = waits && *person != asked.first.person;
    html! {
        (title(&format!("{}?", action.title)))
        div class="body" {
            p { b { (person_of(&asked.intent.by)) } " asks for this, and it needs a second person." @if waits { " It happens as soon as you approve. Refused, it is over." } }
            @if waits && *person == asked.first.person { p class="notice" { "You asked for it, so another person has to decide." } }
            @if waits && is_beyond { p class="notice" { "The numbers have changed since the first person saw them, so this cannot be approved. Refuse it, and ask anew." } }
            (state(action, asked, times))
            section class="panel" { dl class="facts" {
                (fact("Asked by", &html! { (person_of(&asked.intent.by)) " " span class="quiet any" { (asked.first.person) } }))
                (fact("Asked", &times.aged(asked.intent.at)))
                (fact("Does", &told::action(&asked.intent)))
                // The title has the numbers of a date beyond its limit, in the words of the row Now.
                @for line in asked.intent.arguments.lines().filter(|line| !line.starts_with("need: ") && !line.starts_with("up-to: ")) {
                    @let (name, value) = line.split_once(": ").unwrap_or(("", line));
                    // A reason is one text, whatever it has inside.
                    @let parts = if name == REASON { vec![value] } else { value.split("; ").collect() };
                    (fact(name, &html! { @for part in parts { span class="any" { (part) } br; } }))
                }
                @if let Some(now) = now { (fact("Now", &html! { b { (now.named) } })) }
                (fact("Plan", &html! { span class="id" title=(asked.first.hash) { (asked.first.hash.short()) } " " span class="quiet" { "the same in both dialogs" } }))
            } }
            p { (entry(asked.intent.name)) }
        }
        div class="foot" {
            (CLOSE)
            @if may_decide {
                (decides("refuse", "Refuse", "danger", asked))
                @if !is_beyond { (decides("approve", "Approve", "fill", asked)) }
            }
        }
    }
}

fn decides(wish: &str, says: &str, class: &str, asked: &Asked) -> Markup {
    html! { form data-approval=(wish) { (names(asked.intent.name)) (hidden("hash", asked.first.hash.as_str())) button class=(class) { (says) } } }
}

/// The button that opens the dialog of the second person.
pub(crate) fn opens(name: ActionName) -> Markup {
    html! { form data-approval="look" { (names(name)) button class="primary" { "Read and decide…" } } }
}

fn names(name: ActionName) -> Markup {
    html! { (hidden("at", &name.previewed_at.to_string())) (hidden("id", &name.id.to_string())) }
}

fn state(action: &Named, asked: &Asked, times: Times) -> Markup {
    let told = standing(asked, times);
    html! {
        p { span class={ "pill " (told.class) } { (told.word) } " " (told.more) @if asked.standing(times.now) == Standing::Approved { ". " (action.place_to_look) " before you preview it again." } }
        p class="quiet" { "Plan " span class="id" title=(asked.first.hash) { (asked.first.hash.short()) } }
    }
}

fn entry(name: ActionName) -> Markup {
    html! { a href=(link("audit", &[("entry", &name.to_string())])) { "Audit entry" } }
}
