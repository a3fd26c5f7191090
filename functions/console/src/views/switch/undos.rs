//! Undos: the forms that plan one, and each plan with its payments, its run and its files.

use maud::{Markup, html};
use payments_files::{claimed_path, plan_path};
use payments_http::{Problem, Request};
use payments_model::{UndoId, undo};
use payments_store::{StoreError, Undo, UndoPlan};

use crate::function::Console;
use crate::guides::{INCIDENT, UNDO_UNFINISHED};
use crate::html::{copied, fact, heading, top};
use crate::panel::{empty, hidden, opens, panel};
use crate::times::Times;
use crate::told::PLAN_UNDO;
use crate::views::switch::plans::{inexact, ran, totals};

/// The name, label and type of a field.
type Field = (&'static str, &'static str, &'static str);

/// The forms: a title, a note, and the fields.
const FORMS: [(&str, &str, &[Field]); 4] = [
    ("Due date", "All its payments", &[("due", "Due date", "date")]),
    ("Account", "By due dates", &[("account", "Account", "text"), ("from", "From", "date"), ("to", "To", "date")]),
    (
        "Client and time",
        "By the event log; times such as 2026-12-01T08:00:00Z",
        &[("client", "Client", "text"), ("from", "From", "text"), ("to", "To", "text")],
    ),
    (
        "A file of ids",
        "Up to 100,000, one a line, put as undo/ids/<name>.txt into the bucket of reports",
        &[("file", "Name", "text")],
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
        html! { form data-action=(PLAN_UNDO) class="pad" {
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
        (panel(&html! { "Plan by ids" }, &html! { "Up to 200; more in a file" }, &form(&html! {
            label { "Ids, one a line" textarea name="ids" rows="4" maxlength="8000" required {} }
        })))
    }
}

fn shown(id: &str, undo: &Result<Undo, StoreError>, times: Times) -> Markup {
    let content = match undo {
        Err(_) => html! { p class="pad" { span class="pill stop" { "Unreadable" } " See " (UNDO_UNFINISHED) "." } },
        Ok(undo) => {
            html! { @for (place, plan) in undo.plans.iter().rev().enumerate() { (planned(&undo.id, (plan, place == 0), times)) } }
        }
    };
    panel(&html! { "Undo " span class="id" { (id) } }, &html! {}, &content)
}

fn planned(id: &UndoId, (plan, is_last): (&UndoPlan, bool), times: Times) -> Markup {
    let number = plan.number.to_string();
    let can_run = plan.run.is_none() && plan.payments > 0;
    // Another plan of the same undo selects the same again.
    let select = plan.select.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut again: Vec<(&str, &str)> = if is_last { select.collect() } else { Vec::new() };
    again.extend((!again.is_empty()).then_some(("undo", id.as_str())));
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
        @if can_run || !again.is_empty() {
            div class="pad row" {
                @if can_run { (opens(undo::ACTION, "Undo…", "danger", &[("undo", id.as_str()), ("plan", &number)])) }
                @if !again.is_empty() { (opens(PLAN_UNDO, "Plan again…", "", &again)) }
            }
        }
    }
}
