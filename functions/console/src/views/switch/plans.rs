//! A plan of an undo: its payments by status and currency, why it may lack some, and its run.

use maud::{Markup, html};
use payments_store::{UndoPlan, UndoRun};

use crate::html::{fact, grouped, money, word};
use crate::times::Times;

/// The state of a plan's run, and its payments by their ends.
pub(crate) fn ran(plan: &UndoPlan, run: &UndoRun, times: Times) -> Markup {
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
        @if plan.select.contains_key("client") {
            p class="quiet" { "By the event log, which does not show that a shard of the stream stands still. It has all payments only if CountsBehind and RecordsFailing were quiet when it was planned." }
        }
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
