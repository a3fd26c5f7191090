//! Undos: the forms that plan one, and each plan with its payments, its run and its files.

use maud::{Markup, html};
use payments_files::{claimed_path, plan_path};
use payments_http::{Problem, Request};
use payments_model::{UndoId, undo};
use payments_store::{StoreError, Undo, UndoPlan, UndoRun};

use crate::actions::undoing::PLAN;
use crate::function::Console;
use crate::guides::{INCIDENT, UNDO_UNFINISHED};
use crate::html::{copied, fact, grouped, heading, money, top, word};
use crate::panel::{empty, hidden, opens, panel};
use crate::times::Times;

/// The forms: a title, a note, and the fields with their names, labels and types.
const FORMS: [(&str, &str, &[(&str, &str, &str)]); 3] = [
    ("Due date", "All its payments", &[("due", "Due date", "date")]),
    ("Account", "By due dates", &[("account", "Account", "text"), ("from", "From", "date"), ("to", "To", "date")]),
    (
        "Client and time",
        "By the event log; times such as 2026-12-01T08:00:00Z",
        &[("client", "Client", "text"), ("from", "From", "text"), ("to", "To", "text")],
    ),
];

impl Console {
    /// The view of undos: one read.
    pub(crate) async fn undos(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        request.query(&[])?;
        let (times, mut undos) = (self.times(), self.store.undos().await?);
        // The newest first.
        undos.sort_by_key(|(_, undo)| undo.as_ref().ok().and_then(|undo| undo.plans.last().map(|plan| plan.held_at)));
        undos.reverse();
        Ok(html! {
            (top(&heading("Undos"), times))
            div class="cols" {
                div class="stack" {
                    @if undos.is_empty() { (panel(&html! { "Undos" }, &html! {}, &empty(&html! { "Nothing was undone." }))) }
                    @for (id, undo) in &undos { (shown(id, undo, times)) }
                }
                div class="stack acts" { (forms()) }
            }
        })
    }
}

fn forms() -> Markup {
    let form = |fields: &Markup| {
        html! { form data-action=(PLAN) class="pad" {
            (fields) (hidden("step", "preview")) div class="row" { button { "Plan…" } }
        } }
    };
    html! {
        p class="quiet" { "Stop first, and refuse the client: see " (INCIDENT) "." }
        @for (title, note, fields) in FORMS {
            (panel(&html! { "Plan by " (title.to_lowercase()) }, &html! { (note) }, &form(&html! {
                div class="fields" { @for (name, label, kind) in fields { label { (label) input name=(name) type=(kind) required; } } }
            })))
        }
        (panel(&html! { "Plan by ids" }, &html! { "Up to 200" }, &form(&html! {
            label { "Ids, one a line" textarea name="ids" rows="4" maxlength="8000" required {} }
        })))
    }
}

fn shown(id: &str, undo: &Result<Undo, StoreError>, times: Times) -> Markup {
    let content = match undo {
        Err(_) => html! { p class="pad" { span class="pill stop" { "Unreadable" } " See " (UNDO_UNFINISHED) "." } },
        Ok(undo) => html! { @for plan in undo.plans.iter().rev() { (planned(&undo.id, plan, times)) } },
    };
    panel(&html! { "Undo " span class="id" { (id) } }, &html! {}, &content)
}

fn planned(id: &UndoId, plan: &UndoPlan, times: Times) -> Markup {
    let number = plan.number.to_string();
    html! {
        dl class="facts" {
            (fact("Plan", &html! { (plan.number) ", held since " (times.at(plan.held_at)) }))
            (totals(plan))
            (fact("File", &copied(plan_path(id, plan.number).as_ref())))
            @if let Some(run) = &plan.run {
                (fact("Run", &ran(plan, run, times)))
                @if run.ended_at.is_some() { (fact("Claimed", &copied(claimed_path(id, plan.number).as_ref()))) }
            }
        }
        (inexact(plan))
        @if plan.run.is_none() && plan.payments > 0 {
            div class="pad row" { (opens(undo::ACTION, "Undo…", "danger", &[("id", id.as_str()), ("plan", &number)])) }
        }
    }
}

fn ran(plan: &UndoPlan, run: &UndoRun, times: Times) -> Markup {
    let ends: Vec<String> = run.ends.iter().map(|(end, count)| format!("{} {end}", grouped((*count).into()))).collect();
    html! {
        @match run.ended_at {
            Some(at) => { span class="pill good" { "Ended" } " " (times.at(at)) },
            None => { span class="pill warn" { "Open" } " " (grouped(run.place.into())) " of " (grouped(plan.payments.into())) ", begun " (times.aged(run.began_at)) },
        }
        @if !ends.is_empty() { small { (ends.join(", ")) } }
    }
}

/// The reasons why a plan may lack payments.
pub(crate) fn inexact(plan: &UndoPlan) -> Markup {
    html! {
        @if !plan.inexact.is_empty() {
            div class="notice" {
                h3 { "This plan may lack payments" }
                @for reason in &plan.inexact { p { (reason) } }
            }
        }
    }
}

/// The payments of a plan by status and currency.
pub(crate) fn totals(plan: &UndoPlan) -> Markup {
    html! {
        (fact("Payments", &html! { (grouped(plan.payments.into())) }))
        @for ((status, currency), (count, sum)) in &plan.totals {
            (fact(&status.map_or_else(|| "Cut-off creates".to_owned(), word), &html! { (grouped((*count).into())) ", " (money(*sum, *currency)) }))
        }
    }
}
