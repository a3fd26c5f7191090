//! The payments of a date in a status, across accounts, earliest due first.

use futures::stream::{StreamExt as _, TryStreamExt as _, iter};
use maud::{Markup, html};
use payments_http::query::invalid_parameter;
use payments_http::{Problem, Request};
use payments_model::{BusinessDate, PaymentId, Status, UtcSecond};
use payments_store::{DueRange, DueRow, DueSort, DueUntil};

use crate::function::Console;
use crate::guides::PAYMENTS_UNREADABLE;
use crate::html::{day, head_link, heading, instant, link, money, status};
use crate::views::waiting::SHARDS_AT_ONCE;

/// The payments of one page.
const SHOWN: u16 = 50;

/// A page of the list.
struct Page {
    rows: Vec<DueRow>,
    unreadable: usize,
    next: Option<DueSort>,
}

impl Console {
    /// The view of a list. Each page reads the next payments of each shard once, because the shards share one order; past dates
    /// also have payments in the long-term table.
    pub(crate) async fn list(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        let query = request.query(&["date", "status", "cursor"])?;
        let date: BusinessDate = query.get("date")?.ok_or_else(|| invalid_parameter("date", &"it is missing"))?;
        let wanted: Status = query.get("status")?.ok_or_else(|| invalid_parameter("status", &"it is missing"))?;
        let after = query.text("cursor")?.map(|text| place(wanted, date, text)).transpose()?;
        let page = self.page(date, wanted, after).await?;
        let title = format!("{}: {}", day(date), wanted.as_str().to_lowercase());
        let (date, name) = (date.to_string(), wanted.as_str());
        Ok(html! {
            (heading(&title))
            p { a href=(link("day", &[("date", &date)])) { "All of this date" } }
            @if page.unreadable > 0 {
                p class="warn" { (page.unreadable) " payments cannot be read. The function's log names them. See " (PAYMENTS_UNREADABLE) "." }
            }
            @if page.rows.is_empty() && page.next.is_none() { p { "None." } }
            @if !page.rows.is_empty() { (table(&page.rows)) }
            @if let Some(next) = page.next {
                p {
                    a href=(link("list", &[("date", &date), ("status", name), ("cursor", &format!("{}_{}", next.due_at, next.payment_id))])) {
                        "Next " (SHOWN)
                    }
                }
            }
        })
    }

    async fn page(&self, date: BusinessDate, status: Status, after: Option<DueSort>) -> Result<Page, Problem> {
        // Only payments of past days are archived.
        let with_history = date < self.today();
        let deadline = self.deadline();
        let deadline = &deadline;
        let pages = iter(self.config.read_shards.all())
            .map(|shard| async move {
                // If a shard is missing, the order is unknown.
                if deadline.has_come() {
                    return Err(Problem::repeat());
                }
                let range = DueRange { shard, status, until: DueUntil::Date(date), after };
                let page = if with_history {
                    self.store.due_page_of_both(&range, SHOWN).await
                } else {
                    self.store.due_page(&range, SHOWN).await
                };
                Ok(page?)
            })
            .buffered(SHARDS_AT_ONCE);
        let pages: Vec<_> = pages.try_collect().await?;
        let (mut rows, mut unreadable) = (Vec::new(), 0);
        // No shard is read beyond its page, so the list is complete up to the earliest end of a page.
        let mut end: Option<DueSort> = None;
        for page in pages {
            end = [end, page.next].into_iter().flatten().min_by_key(order);
            for row in page.rows {
                match row {
                    Ok(row) => rows.push(row),
                    Err(error) => {
                        tracing::error!(%error, "a payment cannot be read and is left out of the console's list");
                        unreadable += 1;
                    }
                }
            }
        }
        rows.sort_unstable_by_key(|row| order(&row.due));
        if let Some(end) = &end {
            rows.retain(|row| order(&row.due) <= order(end));
        }
        if rows.len() > SHOWN.into() {
            rows.truncate(SHOWN.into());
            end = rows.last().map(|row| row.due);
        }
        Ok(Page { rows, unreadable, next: end })
    }
}

fn order(due: &DueSort) -> (UtcSecond, PaymentId) {
    (due.due_at, due.payment_id)
}

/// The place after which a page begins, from the link to the page.
fn place(status: Status, due_date: BusinessDate, text: &str) -> Result<DueSort, Problem> {
    let parsed = text.split_once('_').and_then(|(at, id)| Some((at.parse().ok()?, id.parse().ok()?)));
    let (due_at, payment_id) = parsed
        .ok_or_else(|| invalid_parameter("cursor", &"it is not a place in this list; begin again with the date"))?;
    Ok(DueSort { status, due_date, due_at, payment_id })
}

/// A table of payments.
pub(crate) fn table(rows: &[DueRow]) -> Markup {
    html! {
        div class="scroll" { table {
            caption { "Earliest due first" }
            thead { tr {
                th scope="col" { "Due" } th scope="col" { "Status" } th scope="col" { "Payment" }
                th scope="col" { "Account" } th scope="col" { "Payee" } th scope="col" class="number" { "Amount" }
                th scope="col" { "Reference" }
            } }
            tbody { @for row in rows { tr {
                td { (instant(row.due.due_at)) }
                td { (status(row.due.status)) @if let Some(code) = &row.failure_code { " " code { (code) } } }
                td { (head_link(&row.head)) }
                td class="text" { (row.head.account) }
                td class="text" { (row.payee) }
                td class="number" { (money(row.money.amount.get().into(), row.money.currency)) }
                td class="text" { @if let Some(reference) = &row.reference { (reference) } }
            } } }
        } }
    }
}
