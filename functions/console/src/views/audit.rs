//! The audit trail: actions of operators in the console and on webhook endpoints, newest first.

use maud::{Markup, html};
use payments_http::query::invalid_parameter;
use payments_http::{Problem, Request};
use payments_store::{ActionName, AuditEntry, AuditMonth, AuditPage, StoreError};

use crate::actions::{UNKNOWN, result};
use crate::function::Console;
use crate::html::{heading, instant, link};

/// The items of one page: intents and outcomes of up to 50 actions.
const ITEMS: u16 = 100;

impl Console {
    /// The view of the trail: one read.
    pub(crate) async fn audit(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        let query = request.query(&["month", "before"])?;
        let month = query.get("month")?.unwrap_or_else(|| AuditMonth::from_second(self.clock.now()));
        let before = query.text("before")?.map(place).transpose()?;
        let AuditPage { entries, next } = self.store.audit_page(&month, before, ITEMS).await?;
        let name = month.to_string();
        Ok(html! {
            (heading(&format!("Audit trail of {name}")))
            form data-view="audit" {
                label for="month" { "Month" }
                input id="month" name="month" type="month" value=(name) required;
                button { "Show" }
            }
            p class="quiet" { "What operators did here, by the time of its preview, and to webhook endpoints over the API, by that of the request, in UTC. What is written here stays." }
            @if entries.is_empty() { p { "None." } } @else { (table(&entries)) }
            @if let Some(next) = next {
                p { a href=(link("audit", &[("month", &name), ("before", &format!("{}_{}", next.previewed_at, next.id))])) { "Earlier" } }
            }
        })
    }
}

/// The place before which a page begins, from the link to the page.
fn place(text: &str) -> Result<ActionName, Problem> {
    let parsed = text.split_once('_').and_then(|(at, id)| Some((at.parse().ok()?, id.parse().ok()?)));
    let (previewed_at, id) = parsed
        .ok_or_else(|| invalid_parameter("before", &"it is not a place in this list; begin again with the month"))?;
    Ok(ActionName { previewed_at, id })
}

fn table(entries: &[Result<AuditEntry, StoreError>]) -> Markup {
    html! {
        div class="scroll" tabindex="0" { table {
            caption { "The newest first" }
            thead { tr {
                th scope="col" { "Confirmed" } th scope="col" { "By" } th scope="col" { "Action" } th scope="col" { "Outcome" }
            } }
            tbody { @for entry in entries {
                @match entry {
                    Ok(entry) => (row(entry)),
                    Err(error) => tr { td colspan="4" class="warn" { (unreadable(error)) } },
                }
            } }
        } }
    }
}

fn row(entry: &AuditEntry) -> Markup {
    let AuditEntry { intent, outcome } = entry;
    html! { tr {
        td { (instant(intent.at)) }
        td class="text" { (intent.by) @if let Some(subject) = &intent.subject { ", " (subject) } }
        td class="text" {
            b { (intent.action) }
            @for line in intent.arguments.lines() { div { (line) } }
            div class="quiet id" { (intent.name.id) }
        }
        td class="text" {
            @match outcome {
                Some(outcome) => { (instant(outcome.at)) (result(outcome)) }
                None => span class="warn" { (UNKNOWN) }
            }
        }
    } }
}

fn unreadable(error: &StoreError) -> &'static str {
    tracing::error!(%error, "an action of the audit trail cannot be read");
    "An action cannot be read. The function's log names it."
}
