//! The dialogs of actions: the preview, and the outcome, which says what was done, what was not, and where to look.

use maud::{Markup, PreEscaped, html};
use payments_model::{ActionName, PaymentId, UtcSecond};
use payments_store::{AuditOutcome, Job};

use crate::actions::preview::Preview;
use crate::html::{link, payment_link};
use crate::panel::{cards, hidden, panel};
use crate::told::{self, CANCEL, Told, UNKNOWN, cancelled, in_words, is_cancelled, parts};

/// An action, as its dialogs name it.
pub(super) struct Named {
    pub(super) name: &'static str,
    pub(super) title: String,
    /// The view in which an operator sees whether the action happened.
    pub(super) place_to_look: &'static str,
    /// The job that it starts.
    pub(super) job: Option<Job>,
}

/// The heading of an answer, to which the script moves the reader.
pub(super) fn title(text: &str) -> Markup {
    html! { div class="head" { h2 id="dialog-title" tabindex="-1" { (text) } } }
}

/// The button that closes a dialog.
pub(super) const CLOSE: PreEscaped<&str> = PreEscaped(r#"<button type="button" data-close>Close</button>"#);

/// The dialog of a preview: with a form that confirms the action with these fields under this name, if there is something to do.
pub(super) fn previewed(
    preview: Preview,
    action: &Named,
    fields: &[(&'static str, String)],
    name: ActionName,
) -> Markup {
    let Some(buttons) = preview.buttons else {
        return html! {
            (title(&action.title))
            div class="body" { (preview.shown) p { b { "Nothing was changed." } } }
            div class="foot" { (CLOSE) }
        };
    };
    html! {
        form data-action=(action.name) {
            (title(&format!("{}?", action.title)))
            div class="body" {
                (preview.shown)
                @for (name, value) in fields { (hidden(name, value)) }
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

/// The outcome of an action that was first confirmed at `since`. An action that was confirmed a moment ago may be under way.
pub(super) fn ended(
    action: &Named,
    (name, since): (ActionName, UtcSecond),
    outcome: Option<&AuditOutcome>,
    is_recent: bool,
) -> Markup {
    let told = told::outcome(action.name, outcome);
    html! {
        (title(&heading(action, outcome)))
        div class="body" {
            @match outcome {
                Some(_) if told.class == "stop" => div class="notice now" { h3 { (told.word) } p { (told.more) } },
                Some(outcome) => (done(action, since, outcome, &told)),
                None if is_recent => p class="notice" { "It was confirmed a moment ago, and may be under way. The audit trail shows what came of it." },
                None => div class="notice" { h3 { (told.word) } p { (UNKNOWN) ". " (action.place_to_look) " before you preview it again." } },
            }
            p { a href=(link("audit", &[("entry", &name.to_string())])) { "Audit entry" } }
        }
        div class="foot" { (CLOSE) }
    }
}

/// The result as a heading: `126 of 128 cancelled`.
fn heading(action: &Named, outcome: Option<&AuditOutcome>) -> String {
    let cancels = outcome.map(|outcome| parts(&outcome.result)).filter(|parts| !parts.is_empty());
    match cancels {
        Some(parts) if action.name == CANCEL => {
            let of = parts.iter().filter(|(_, rest)| is_cancelled(rest)).count();
            if of == parts.len() { format!("{of} cancelled") } else { format!("{of} of {} cancelled", parts.len()) }
        }
        _ => action.title.clone(),
    }
}

fn done(action: &Named, since: UtcSecond, outcome: &AuditOutcome, told: &Told) -> Markup {
    if action.name == CANCEL {
        return cancels(&parts(&outcome.result));
    }
    html! {
        p { span class={ "pill " (told.class) } { (told.word) } " " (told.more) @for (id, _) in parts(&outcome.result) { " " (payment_link(id)) } }
        @if let Some(job) = action.job { (follow(job.as_str(), since)) }
    }
}

/// The place of a run's outcome, which the script reads until the run has ended.
fn follow(job: &str, since: UtcSecond) -> Markup {
    let since = since.to_string();
    let view = link("run", &[("job", job), ("since", &since)]);
    html! {
        div class="panel" { p class="empty" role="status" data-follow=(view.trim_start_matches('#')) { b { "It has not ended yet." } } }
    }
}

/// The payments of a cancel: first those that were not cancelled, each with the reason.
fn cancels(parts: &[(PaymentId, &str)]) -> Markup {
    let (done, others): (Vec<_>, Vec<_>) = parts.iter().partition(|(_, rest)| is_cancelled(rest));
    let row = |id: PaymentId, rest: &str| {
        html! { tr { td { (payment_link(id)) } td class="end" { (in_words(rest)) } } }
    };
    let columns = [("Payment", ""), ("Result", "")];
    html! {
        @if !others.is_empty() {
            p { (cancelled(parts)) "." }
            (panel(&html! { "Not cancelled " span class="quiet" { (others.len()) } }, &html! {},
                &cards("Not cancelled", &columns, &html! { @for (id, rest) in &others { (row(*id, rest)) } })))
        }
        @if !done.is_empty() {
            (panel(&html! { "Cancelled " span class="quiet" { (done.len()) } }, &html! {},
                &html! { p class="pad" { span { @for (id, _) in &done { (payment_link(*id)) " " } } } }))
        }
    }
}
