//! The outcome of an action, as its dialog shows it: what was done, what was not, and where to look.

use maud::{Markup, html};
use payments_model::{PaymentId, UtcSecond};
use payments_store::{ActionName, AuditOutcome};

use crate::actions::{Action, CLOSE, title};
use crate::html::{link, payment_link};
use crate::panel::{cards, panel};
use crate::told::{self, Told, UNKNOWN, cancelled, in_words, is_cancelled, parts};

/// The outcome of an action that was first confirmed at `since`. An action that was confirmed a moment ago may be under way.
pub(super) fn ended(
    action: &Action,
    (name, since): (ActionName, UtcSecond),
    outcome: Option<&AuditOutcome>,
    is_recent: bool,
) -> Markup {
    let told = told::outcome(action.name(), outcome);
    let entry = format!("{}_{}", name.previewed_at, name.id);
    html! {
        (title(&heading(action, outcome)))
        div class="body" {
            @match outcome {
                Some(_) if told.class == "stop" => div class="notice now" { h3 { (told.word) } p { (told.more) } },
                Some(outcome) => (done(action, since, outcome, &told)),
                None if is_recent => p class="notice" { "It was confirmed a moment ago, and may be under way. The audit trail shows what came of it." },
                None => div class="notice" { h3 { (told.word) } p { (UNKNOWN) ". " (action.place_to_look()) " before you preview it again." } },
            }
            p { a href=(link("audit", &[("entry", &entry)])) { "Audit entry" } }
        }
        div class="foot" { (CLOSE) }
    }
}

/// The result as a heading: `126 of 128 cancelled`.
fn heading(action: &Action, outcome: Option<&AuditOutcome>) -> String {
    let cancels = outcome.map(|outcome| parts(&outcome.result)).filter(|parts| !parts.is_empty());
    match (action, cancels) {
        (Action::Cancel(_), Some(parts)) => {
            let of = parts.iter().filter(|(_, rest)| is_cancelled(rest)).count();
            if of == parts.len() { format!("{of} cancelled") } else { format!("{of} of {} cancelled", parts.len()) }
        }
        _ => action.title(),
    }
}

fn done(action: &Action, since: UtcSecond, outcome: &AuditOutcome, told: &Told) -> Markup {
    match action {
        Action::Cancel(_) => cancels(&parts(&outcome.result)),
        _ => html! {
            p { span class={ "pill " (told.class) } { (told.word) } " " (told.more) @for (id, _) in parts(&outcome.result) { " " (payment_link(id)) } }
            @if let Action::Start(run) = action { (follow(run.job().as_str(), since)) }
        },
    }
}

/// The place of a run's outcome, which the script reads until the run has ended.
fn follow(job: &str, since: UtcSecond) -> Markup {
    let since = since.to_string();
    let view = link("run", &[("job", job), ("since", &since)]);
    html! {
        div class="panel" { p class="pad" role="status" data-follow=(view.trim_start_matches('#')) { b { "It has not ended yet." } } }
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
