//! The payments of a date in a status, across accounts, earliest due first.

mod filter;
mod rows;
mod selects;

use futures::future::try_join;
use futures::stream::{StreamExt as _, TryStreamExt as _, iter};
use maud::{Markup, html};
use payments_http::query::invalid_parameter;
use payments_http::{Problem, Request};
use payments_model::{BusinessDate, FailureCode, PaymentId, Status, UtcSecond};
use payments_store::{DueRange, DueRow, DueSort, DueUntil};

use crate::function::Console;
use crate::guides::PAYMENTS_UNREADABLE;
use crate::html::{grouped, link, top, word};
use crate::reasons::reason;
use crate::times::Times;
use crate::views::dates::{day_link, list_link};
use crate::views::failures::{Group, groups, line};
use crate::views::list::filter::Filter;
pub(crate) use crate::views::list::selects::Selects;
use crate::views::place_in;
use crate::views::waiting::SHARDS_AT_ONCE;

/// The payments of one page.
const SHOWN: u16 = 50;

/// The most payments that a filter looks at in one request, unless [`SHOWN`] of each shard are more: about 1 MB.
const LOOKED_AT: u16 = 3_000;

/// The parameters of the view: those of the list, and the fields of its filter.
const PARAMETERS: [&str; 9] = ["date", "status", "cursor", "account", "payee", "reference", "amount", "code", "select"];

/// The list that is asked for.
struct List {
    date: BusinessDate,
    status: Status,
    filter: Filter,
    after: Option<DueSort>,
    selects: Selects,
}

/// A page of the list.
struct Page {
    /// The payments that match.
    rows: Vec<DueRow>,
    /// The number of payments up to the page's end, matching or not.
    looked_at: usize,
    unreadable: usize,
    next: Option<DueSort>,
}

impl Console {
    /// The view of a list. Each page reads the next payments of each shard once, because the shards share one order; past dates
    /// also have payments in the long-term table. With a filter it reads more of each, at most [`LOOKED_AT`] together.
    pub(crate) async fn list(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        let query = request.query(&PARAMETERS)?;
        let date: BusinessDate = query.get("date")?.ok_or_else(|| invalid_parameter("date", &"it is missing"))?;
        let status: Status = query.get("status")?.ok_or_else(|| invalid_parameter("status", &"it is missing"))?;
        let after = query.text("cursor")?.map(|text| place(status, date, text)).transpose()?;
        let list = List { date, status, filter: Filter::read(&query)?, after, selects: Selects::read(&query)? };
        let failures =
            async { if status == Status::Failed { Ok(groups(&self.figures(date).await?)) } else { Ok(Vec::new()) } };
        let (page, failures) = try_join(self.page(&list), failures).await?;
        Ok(list.shown(&page, &failures, self.times()))
    }

    async fn page(&self, list: &List) -> Result<Page, Problem> {
        // Only payments of past days are archived.
        let with_history = list.date < self.today();
        let shards = self.config.read_shards;
        let most = list.selects.most(SHOWN);
        let of_each = if list.filter.is_empty() { most } else { (LOOKED_AT / shards.get()).max(most) };
        let deadline = self.deadline();
        let deadline = &deadline;
        let pages = iter(shards.all())
            .map(|shard| async move {
                // If a shard is missing, the order is unknown.
                if deadline.has_come() {
                    return Err(Problem::repeat());
                }
                let range =
                    DueRange { shard, status: list.status, until: DueUntil::Date(list.date), after: list.after };
                let page = if with_history {
                    self.store.due_page_of_both(&range, of_each).await
                } else {
                    self.store.due_page(&range, of_each).await
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
        let (rows, looked_at, next) = matching(rows, &list.filter, most, end);
        Ok(Page { rows, looked_at, unreadable, next })
    }
}

/// The first rows that match, the number of rows up to the end of the page, and the place after which the next page begins.
fn matching(
    rows: Vec<DueRow>,
    filter: &Filter,
    most: u16,
    mut end: Option<DueSort>,
) -> (Vec<DueRow>, usize, Option<DueSort>) {
    let complete = rows.into_iter().filter(|row| end.is_none_or(|end| order(&row.due) <= order(&end)));
    let (mut matching, mut looked_at) = (Vec::new(), 0);
    for row in complete.collect::<Vec<_>>() {
        if filter.matches(&row) {
            if matching.len() == usize::from(most) {
                end = matching.last().map(|row: &DueRow| row.due);
                break;
            }
            matching.push(row);
        }
        looked_at += 1;
    }
    (matching, looked_at, end)
}

fn order(due: &DueSort) -> (UtcSecond, PaymentId) {
    (due.due_at, due.payment_id)
}

/// The place after which a page begins, from the link to the page.
fn place(status: Status, due_date: BusinessDate, text: &str) -> Result<DueSort, Problem> {
    let (due_at, payment_id) = place_in("date", "cursor", text)?;
    Ok(DueSort { status, due_date, due_at, payment_id })
}

impl List {
    fn shown(&self, page: &Page, failures: &[Group], times: Times) -> Markup {
        let date = times.date(self.date);
        let heading = html! {
            div class="row" {
                h1 tabindex="-1" { (word(self.status)) " " span class="quiet" { "due " (date) } }
                a class="button" href=(day_link(self.date)) aria-label={ "Day, " (date) } { "‹ Day" }
            }
        };
        html! {
            (top(&heading, times))
            @if page.unreadable > 0 {
                p class="notice" { span { (page.unreadable) " payments cannot be read. The function's log names them. See " (PAYMENTS_UNREADABLE) "." } }
            }
            section class="panel" {
                nav class="tabs" aria-label="Statuses" {
                    @for status in Status::ALL {
                        a href=(list_link(self.date, status)) aria-current=[(status == self.status).then_some("page")] { (word(status)) }
                    }
                }
                div class="pad" { (line(self.date, failures)) (self.fields()) }
                @if page.rows.is_empty() { p class="empty" { (self.nothing(page, &date)) } } @else {
                    (rows::table(self.status, &page.rows, times, self.selects.is_all, &self.bar(page), &format!("{} payments due {date}, earliest due first", word(self.status))))
                }
            }
            (self.end(page, times))
        }
    }

    /// The form of the filter.
    fn fields(&self) -> Markup {
        let field = |label: &str, name: &str, size: u8, hint: &str| {
            html! { label { (label) input name=(name) size=(size) maxlength="48" placeholder=(hint) value=(self.filter.text(name)); } }
        };
        html! {
            form data-view="list" autocomplete="off" {
                input type="hidden" name="date" value=(self.date);
                input type="hidden" name="status" value=(self.status);
                div class="fields" {
                    (field("Amount", "amount", 12, "1250.00"))
                    (field("To", "payee", 14, "any part"))
                    (field("Reference", "reference", 16, "any part"))
                    (field("From", "account", 14, "any part"))
                    @if self.status == Status::Failed { (self.codes()) }
                    div class="row all" {
                        button class="primary" { "Show" }
                        @if !self.filter.is_empty() { a href=(list_link(self.date, self.status)) { "Clear filters" } }
                    }
                }
            }
        }
    }

    fn codes(&self) -> Markup {
        let asked = self.filter.text("code");
        let is_listed = FailureCode::LISTED.contains(&asked) || asked.is_empty();
        html! {
            label class="all" { "Reason" select name="code" {
                option value="" { "Any" }
                @for code in FailureCode::LISTED { option value=(code) selected[code == asked] { (reason(code)) } }
                @if !is_listed { option value=(asked) selected { (asked) } }
            } }
        }
    }

    /// The words for a page without payments.
    fn nothing(&self, page: &Page, date: &str) -> Markup {
        html! {
            @if self.filter.is_empty() && self.after.is_none() && page.next.is_none() { b { "No payment due " (date) " is " (word(self.status).to_lowercase()) "." } }
            @else if self.filter.is_empty() { b { "No more payments." } }
            @else if page.next.is_some() { b { "Nothing matches so far." } " Go on to look further." }
            @else { b { "Nothing matches." } " " a href=(list_link(self.date, self.status)) { "Clear filters" } "." }
        }
    }

    /// The end of a page: the number of payments that were looked at, and the link to the next ones.
    fn end(&self, page: &Page, times: Times) -> Markup {
        let is_filtered = !self.filter.is_empty();
        html! {
            @if is_filtered || page.next.is_some() {
                p class="row" {
                    @if let Some(next) = page.next {
                        a class="button" href=(self.next(next)) { @if is_filtered { "Go on" } @else { "Next " (SHOWN) } }
                    }
                    span class="quiet" {
                        @match (is_filtered, page.next) {
                            (true, Some(next)) => { (looked(page)) ", up to those due " (times.at(next.due_at)) ". More follow" }
                            (true, None) => { (looked(page)) ". These are the last" }
                            (false, _) => "More follow",
                        }
                    }
                }
            }
        }
    }

    /// The bar of the selection.
    fn bar(&self, page: &Page) -> Markup {
        self.selects.bar(page.next.is_some(), &self.address(("select", "all")))
    }

    fn next(&self, next: DueSort) -> String {
        self.address(("cursor", &format!("{}_{}", next.due_at, next.payment_id)))
    }

    /// The address of the same list with one more argument.
    fn address(&self, more: (&'static str, &str)) -> String {
        let date = self.date.to_string();
        let mut arguments = vec![("date", date.as_str()), ("status", self.status.as_str())];
        arguments.extend(self.filter.arguments());
        arguments.push(more);
        link("list", &arguments)
    }
}

fn looked(page: &Page) -> String {
    let (matching, looked_at) = (page.rows.len(), page.looked_at);
    let [matching, looked_at] =
        [matching, looked_at].map(|number| grouped(i128::try_from(number).unwrap_or(i128::MAX)));
    format!("{matching} of the {looked_at} payments that were looked at here match")
}
