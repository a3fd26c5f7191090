//! The dates ahead: how many payments each has.

use std::iter::successors;

use maud::{Markup, html};
use payments_http::{Problem, Request};
use payments_model::{BusinessDate, DayCounts, Status};

use crate::function::Console;
use crate::html::{closed, day, grouped, heading, link};

/// The dates of one view. All lanes of these dates are about 250 KB.
const DATES: u32 = 31;

impl Console {
    /// The view of a month of dates, by default from today on. It reads each lane of the counters once.
    pub(crate) async fn ahead(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        let from: BusinessDate = request.query(&["from"])?.get("from")?.unwrap_or_else(|| self.today());
        let to = from.plus_days(DATES - 1);
        let mut counters = self.store.counters(from, to).await?;
        let dates = successors(Some(from), |date| (*date < to).then(|| date.plus_days(1)));
        let days: Vec<_> = dates.map(|date| (date, counters.remove(&date).unwrap_or_default().counts)).collect();
        let most = days.iter().map(|(_, counts)| counts.total()).max().unwrap_or(0).max(1);
        let [before, after] = [from.minus_days(DATES), from.plus_days(DATES)].map(|date| date.to_string());
        Ok(html! {
            (heading(&format!("{} to {}", day(from), day(to))))
            p {
                a href=(link("ahead", &[("from", &before)])) { "Earlier" } " "
                a href=(link("ahead", &[("from", &after)])) { "Later" }
            }
            div class="scroll" { table {
                caption { "Payments by the date on which they are due" }
                thead { tr {
                    th scope="col" { "Date" }
                    th scope="col" class="number" { "Payments" }
                    th scope="col" class="number" { "Scheduled" }
                    th scope="col" class="number" { "Pending" }
                    th scope="col" class="number" { "Failed" }
                    th scope="col" { span aria-hidden="true" { "Share of the largest" } }
                } }
                tbody { @for (date, counts) in &days { (row(*date, closed(&self.config.business_days, *date), counts, most)) } }
            } }
        })
    }
}

fn row(date: BusinessDate, closed: Option<String>, counts: &DayCounts, most: i64) -> Markup {
    let text = date.to_string();
    let number = |number: i64| html! { td class="number" { (grouped(number.into())) } };
    let width = i128::from(counts.total().max(0)) * 100 / i128::from(most);
    html! { tr {
        th scope="row" { a href=(link("day", &[("date", &text)])) { (day(date)) } @if let Some(closed) = closed { div class="quiet" { (closed) } } }
        (number(counts.total()))
        @for status in [Status::Scheduled, Status::Pending, Status::Failed] { (number(counts.count(status))) }
        td { svg width="100" height="12" aria-hidden="true" { rect class="scheduled" width=(width) height="12" {} } }
    } }
}
