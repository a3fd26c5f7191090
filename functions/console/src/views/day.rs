//! A date: the number of its payments in each status, their sums, and its late payments.

use maud::{Markup, html};
use payments_http::{Problem, Request};
use payments_model::{BusinessDate, DayCounts, Status};
use payments_store::DateCounters;

use crate::function::Console;
use crate::guides::{CHANGES_UNPARSED, COUNTS_BEHIND, PAYMENTS_OVERDUE};
use crate::html::{closed, day, grouped, heading, link, money, status};
use crate::views::waiting::late_table;

/// The most late payments of a date that are shown.
const LATE_SHOWN: u16 = 1;

impl Console {
    /// The view of a date, by default today. It reads each lane of the date's counters once; today's also each shard of the
    /// `due` index.
    pub(crate) async fn day(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        let asked: Option<BusinessDate> = request.query(&["date"])?.get("date")?;
        let date = asked.unwrap_or_else(|| self.today());
        let counters = self.store.counters(date, date).await?.remove(&date).unwrap_or_default();
        let late = if date == self.today() { Some(self.late(Status::Scheduled, LATE_SHOWN).await?) } else { None };
        // Without a date, the address shows the view of today, even after midnight.
        let address =
            asked.map_or_else(|| "/console/views/day".to_owned(), |date| format!("/console/views/day?date={date}"));
        let paused = self.paused_notice();
        let closed = closed(&self.config.business_days, date);
        let late = late.map(|late| late_table(&late, self.times()));
        Ok(html! {
            div data-live data-hx-get=(address) data-hx-trigger="every 10s" data-hx-target="#main" data-hx-swap="innerMorph" {
                (page(date, self.today(), &counters, Beside { closed, paused, late }))
            }
        })
    }
}

/// The parts of the view that are not counters.
struct Beside {
    closed: Option<String>,
    paused: Markup,
    late: Option<Markup>,
}

fn page(
    date: BusinessDate,
    today: BusinessDate,
    counters: &DateCounters,
    Beside { closed, paused, late }: Beside,
) -> Markup {
    let counts = &counters.counts;
    let text = date.to_string();
    let [before, after] = [date.minus_days(1), date.plus_days(1)].map(|date| date.to_string());
    html! {
        (heading(&format!("{}{}", day(date), if date == today { ", today" } else { "" })))
            form data-view="day" {
                a href=(link("day", &[("date", &before)])) { "Day before" }
                label for="date" { "Date" }
                input id="date" name="date" type="date" value=(text) required;
                button { "Show" }
                a href=(link("day", &[("date", &after)])) { "Day after" }
            }
            @if let Some(closed) = closed { p { b { (closed) } } }
            (paused)
            (bar(counts))
            (statuses(&text, counts))
            @if counts.sums().next().is_some() { (sums(counts)) }
            @if counts.unparsed != 0 {
                p class="warn" { (grouped(counts.unparsed.into())) " changes of this date could not be read, so its counts may be wrong until a repair. See " (CHANGES_UNPARSED) "." }
            }
            @if let Some(late) = &late {
                h2 { "Due and not claimed yet" }
                (late)
                p class="quiet" { "See " (PAYMENTS_OVERDUE) "." }
            }
    }
}

fn statuses(date: &str, counts: &DayCounts) -> Markup {
    html! {
        div class="scroll" { table {
            caption { "Payments that are due on this date. A change is counted within seconds, or later while the alarm " (COUNTS_BEHIND) " is on. Archived payments, which are in the long-term table alone, are counted in their status, too." }
            thead { tr { th scope="col" { "Status" } th scope="col" class="number" { "Payments" } } }
            tbody {
                @for known in Status::ALL {
                    tr {
                        th scope="row" { a href=(link("list", &[("date", date), ("status", known.as_str())])) { (status(known)) } }
                        td class="number" { (grouped(counts.count(known).into())) }
                    }
                }
                tr { th scope="row" { "All" } td class="number" { (grouped(counts.total().into())) } }
                tr { th scope="row" { "Archived" } td class="number" { (grouped(counts.archived.into())) } }
            }
        } }
    }
}

fn sums(counts: &DayCounts) -> Markup {
    html! {
        h2 { "Sums" }
        div class="scroll" tabindex="0" { table {
            caption { "By currency and status" }
            thead { tr { th scope="col" { "Status" } th scope="col" class="number" { "Sum" } } }
            tbody {
                @for (currency, known, sum) in counts.sums() {
                    tr { th scope="row" { (status(known)) } td class="number" { (money(sum, currency)) } }
                }
            }
        } }
    }
}

/// The shares of the statuses, as a picture. The table beside it has the numbers.
fn bar(counts: &DayCounts) -> Markup {
    const WIDTH: i64 = 1_000;
    let total = counts.total();
    let mut left = 0;
    let mut pieces = Vec::new();
    for known in Status::ALL {
        let count = counts.count(known).max(0);
        let width = if total > 0 { i128::from(count) * i128::from(WIDTH) / i128::from(total) } else { 0 };
        pieces.push((known.as_str().to_ascii_lowercase(), left, width));
        left += width;
    }
    html! {
        @if total > 0 {
            svg class="bar" viewBox={ "0 0 " (WIDTH) " 20" } preserveAspectRatio="none" aria-hidden="true" {
                @for (class, x, width) in pieces { rect class=(class) x=(x) y="0" width=(width) height="20" {} }
            }
        }
    }
}
