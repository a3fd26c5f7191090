//! The dates ahead: how many payments each has, by status.

use std::iter::successors;

use futures::future::try_join;
use maud::{Markup, html};
use payments_http::{Problem, Request};
use payments_model::{BusinessDate, DayCounts, Status};

use crate::function::Console;
use crate::html::{class, grouped, link, top, word};
use crate::runs::{WAITS, waiting_dates};
use crate::times::Times;
use crate::views::dates::{DATES, day_link, list_link, mark};
use crate::views::share::{length, pieces, rectangles};

/// The least width of a piece of a bar.
const LEAST: i64 = 2;

impl Console {
    /// The view of a month of dates, by default from today on. It reads each lane of the counters once, and the last runs.
    pub(crate) async fn ahead(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        let from: BusinessDate = request.query(&["from"])?.get("from")?.unwrap_or_else(|| self.today());
        let to = from.plus_days(DATES - 1);
        let (mut counters, runs) = try_join(self.store.counters(from, to), self.last_runs()).await?;
        let to_redate = waiting_dates(&runs);
        let dates = successors(Some(from), |date| (*date < to).then(|| date.plus_days(1)));
        let days: Vec<_> = dates.map(|date| (date, counters.remove(&date).unwrap_or_default().counts)).collect();
        let times = self.times();
        let marks = |date| {
            html! {
                @if let Some(mark) = mark(&self.config.business_days, date, times) { " " small { (mark) } }
                @if to_redate.contains(&date) { (WAITS) }
            }
        };
        let widest = days.iter().map(|(_, counts)| length(counts.total())).max().unwrap_or(0);
        Ok(html! {
            (top(&heading(from, to, self.today(), times), times))
            section class="panel" {
                div class="head" {
                    h2 { "Payments by the date on which they are due" }
                    p class="key quiet" { @for status in Status::ALL { span class={ "dot " (class(status)) } { (word(status)) } } }
                }
                table class="cards" role="table" {
                    thead { tr role="row" {
                        th role="columnheader" scope="col" { "Date" }
                        th role="columnheader" scope="col" class="num" { "Payments" }
                        th role="columnheader" scope="col" { "Compared, on a log scale" }
                        @for status in Status::ALL { th role="columnheader" scope="col" class="num" { (word(status)) } }
                    } }
                    tbody role="rowgroup" { @for (date, counts) in &days {
                        (row(*date, *date == self.today(), &marks(*date), counts, (times, widest)))
                    } }
                }
            }
        })
    }
}

fn heading(from: BusinessDate, to: BusinessDate, today: BusinessDate, times: Times) -> Markup {
    let (before, after) = (from.minus_days(DATES), to.plus_days(1));
    let ahead = |from: BusinessDate| link("ahead", &[("from", &from.to_string())]);
    html! {
        div class="row" {
            h1 tabindex="-1" { (times.date(from)) " to " (times.date(to)) }
            nav class="row" aria-label="Dates" {
                @if before < from { a class="button" href=(ahead(before)) { "‹ Earlier" } }
                @if after > to { a class="button" href=(ahead(after)) { "Later ›" } }
                @if from != today { a class="button" href=(link("ahead", &[])) { "From today" } }
            }
        }
    }
}

fn row(
    date: BusinessDate,
    is_today: bool,
    marks: &Markup,
    counts: &DayCounts,
    (times, widest): (Times, i64),
) -> Markup {
    let total = counts.total();
    let bar = pieces(counts, length(total), LEAST);
    html! { tr role="row" {
        th role="rowheader" scope="row" {
            a class="n" href=(day_link(date)) { (times.date(date)) }
            @if is_today { " " span class="quiet" { "today" } }
            (marks)
        }
        (number(None, total))
        td role="cell" class="all" {
            @if total > 0 { svg width=(widest) height="10" aria-hidden="true" { (rectangles(&bar, 10)) } }
        }
        @for status in Status::ALL { (number(Some((status, list_link(date, status))), counts.count(status))) }
    } }
}

/// A cell with a number. That of a status leads to the payments, and is left out of a card if it is zero.
fn number(status: Option<(Status, String)>, count: i64) -> Markup {
    let shown = grouped(count.into());
    html! {
        @match status {
            None if count == 0 => td role="cell" class="num end zero" { (shown) },
            None => td role="cell" class="num end b" { (shown) },
            Some((status, _)) if count == 0 => td role="cell" class="num all zero none" data-l=(word(status)) { (shown) },
            Some((status, list)) => td role="cell" class="num all" data-l=(word(status)) { a href=(list) { (shown) } },
        }
    }
}
