//! A date: the number of its payments in each status, how fast they are settled, their sums, and the next dates.

pub(crate) mod chart;
mod pace;

use std::collections::{BTreeMap, BTreeSet};

use futures::future::try_join3;
use maud::{Markup, html};
use payments_http::{Problem, Request};
use payments_model::{BusinessDate, Currency, DayCounts, Status};
use payments_store::{DateCounters, DayFigures, StoreError};

use crate::function::Console;
use crate::guides::{CHANGES_UNPARSED, COUNTS_BEHIND};
use crate::html::{class, grouped, link, live_top, major, word};
use crate::runs::{WAITS, waiting_dates};
use crate::times::Times;
use crate::views::dates::{DATES, day_link, list_link, mark, next_open};
use crate::views::day::chart::{panel, points};
use crate::views::failures::{self, groups};
use crate::views::share::{length, percent, pieces, rectangles, settled};
use crate::views::switch::{HeldBy, beyond_limit};

/// The number of next dates that are shown. As many closed ones with payments may follow.
const NEXT: usize = 5;

/// The widths of the day's bar and of the bars of the next dates.
const BAR: i64 = 1_000;
const NEXT_BAR: i64 = 72;

/// The least width of a piece of a bar, so that it is seen.
const LEAST: i64 = 2;

/// A date, and the payments of it and of later dates.
struct Day<'c> {
    console: &'c Console,
    times: Times,
    date: BusinessDate,
    today: BusinessDate,
    counters: BTreeMap<BusinessDate, DateCounters>,
    /// The samples and the reported failures of the date. A later date has none.
    figures: DayFigures,
    /// The holds of scheduled payments of this date, today or a past one.
    held: HeldBy,
    /// The closed dates on which payments wait for a redate.
    to_redate: BTreeSet<BusinessDate>,
}

impl Console {
    /// The view of a date, by default today. It reads each lane once, for this date and the next ones, the figures of the date, the
    /// last runs and, if payments of today or of a past date are left, its holds. It reads no shard, so it takes as long with many payments as with few.
    pub(crate) async fn day(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        let asked: Option<BusinessDate> = request.query(&["date"])?.get("date")?;
        let date = asked.unwrap_or_else(|| self.today());
        let counters = self.store.counters(date, date.plus_days(DATES));
        let (counters, figures, runs) = try_join3(counters, self.figures(date), self.last_runs()).await?;
        // Without a date, the address shows the view of today, even after midnight.
        let address =
            asked.map_or_else(|| "/console/views/day".to_owned(), |date| format!("/console/views/day?date={date}"));
        let (times, today) = (self.times(), self.today());
        let is_left = counters.get(&date).is_some_and(|counters| counters.counts.count(Status::Scheduled) > 0);
        let held = if date <= today && is_left { self.held_by(date).await? } else { HeldBy::default() };
        let day = Day { console: self, times, date, today, counters, figures, held, to_redate: waiting_dates(&runs) };
        Ok(html! {
            div class="stack" data-live data-hx-get=(address) data-hx-trigger="every 10s" data-hx-target="#main" data-hx-swap="innerMorph" {
                (day.shown())
            }
        })
    }

    /// The figures of a date: one read. Nothing is sampled or reported of a date before it comes. Figures that cannot be read do not
    /// hide the counters.
    pub(crate) async fn figures(&self, date: BusinessDate) -> Result<DayFigures, StoreError> {
        if date > self.today() {
            return Ok(DayFigures::default());
        }
        match self.store.figures(date).await {
            Ok(figures) => Ok(figures.unwrap_or_default()),
            Err(error @ StoreError::Unreadable { .. }) => {
                tracing::error!(%date, %error, "the figures of a date cannot be read");
                Ok(DayFigures::default())
            }
            Err(error) => Err(error),
        }
    }
}

impl Day<'_> {
    fn counters(&self, date: BusinessDate) -> DateCounters {
        self.counters.get(&date).cloned().unwrap_or_default()
    }

    fn mark(&self, date: BusinessDate) -> Option<String> {
        mark(&self.console.config.business_days, date, self.times)
    }

    fn list(&self, status: Status) -> String {
        list_link(self.date, status)
    }

    fn shown(&self) -> Markup {
        let counters = self.counters(self.date);
        let counts = &counters.counts;
        let is_past_or_today = self.date <= self.today;
        html! {
            (self.top())
            @if self.held.limit && self.held.is_known { (beyond_limit(self.date, self.times)) }
            @if counts.unparsed != 0 {
                p class="notice" { span { (grouped(counts.unparsed.into())) " changes of this date could not be read, so its counts may be wrong until a repair. See " (CHANGES_UNPARSED) "." } }
            }
            @if counts.total() == 0 { section class="panel" { p class="empty" { (self.nothing()) } } } @else { (self.statuses(counts)) }
            @let has_sums = counts.sums().next().is_some();
            div class=(if is_past_or_today || has_sums { "cols" } else { "stack" }) {
                @if is_past_or_today || has_sums {
                    div class="stack" {
                        @if is_past_or_today { (self.line(counts)) }
                        @if has_sums { (sums(counts)) }
                    }
                }
                div class="stack" {
                    (self.next_dates())
                    @if counts.count(Status::Failed) > 0 { (failures::panel(self.date, &groups(&self.figures), counts.count(Status::Failed))) }
                }
            }
        }
    }

    fn top(&self) -> Markup {
        let heading = html! {
            div class="row" {
                h1 tabindex="-1" {
                    (self.times.date(self.date)) @if self.date == self.today { " " span class="quiet" { "today" } }
                }
                @if let Some(mark) = self.mark(self.date) { p class="quiet" { (mark) } }
                nav class="row" aria-label="Dates" {
                    @if self.date > BusinessDate::MIN { (self.beside(self.date.minus_days(1), "Day before", ("‹ ", ""))) }
                    @if self.date < BusinessDate::MAX { (self.beside(self.date.plus_days(1), "Day after", ("", " ›"))) }
                }
                form class="row" data-view="day" {
                    input id="date" name="date" type="date" value=(self.date) required aria-label="Another date";
                    button { "Show" }
                }
            }
        };
        live_top(&heading, self.times)
    }

    /// A link to the date before or after.
    fn beside(&self, date: BusinessDate, words: &str, (left, right): (&str, &str)) -> Markup {
        let short = date.as_chrono().format("%a %-d").to_string();
        html! {
            a class="button" href=(day_link(date)) aria-label={ (words) ", " (self.times.date(date)) } { (left) (short) (right) }
        }
    }

    /// The words for a date without payments.
    fn nothing(&self) -> Markup {
        let days = &self.console.config.business_days;
        html! {
            @let closed = self.mark(self.date).filter(|mark| mark.contains("closed"));
            b { "Nothing is due on " (self.times.date(self.date)) @if let Some(closed) = &closed { ": " (closed.replace(": ", ", ")) } "." }
            @if closed.is_some() {
                @if let Some(open) = next_open(days, self.date, self.times) {
                    " Next open date " a href=(day_link(open)) { (self.times.date(open)) } "."
                }
            }
        }
    }

    fn statuses(&self, counts: &DayCounts) -> Markup {
        let (done, of) = settled(counts);
        html! {
            section class="panel" {
                div class="head" {
                    h2 { (percent(done, of)) " settled " span class="quiet" { (grouped(done.into())) " of " (grouped(of.into())) } }
                    (self.beside_share(counts))
                }
                div class="pad" {
                    svg class="bar" viewBox={ "0 0 " (BAR) " 10" } preserveAspectRatio="none" aria-hidden="true" { (rectangles(&pieces(counts, BAR, LEAST), 10)) }
                }
                div class="tiles" {
                    @for status in Status::ALL {
                        a href=(self.list(status)) {
                            span class={ "dot " (class(status)) } { (word(status)) }
                            strong class=[(counts.count(status) == 0).then_some("zero")] { (grouped(counts.count(status).into())) }
                            span class="quiet" { (self.note(status, counts, of)) }
                        }
                    }
                }
            }
        }
    }

    /// The end of the rest, as far as its pace says anything about it. Of a past date, how many payments are archived.
    fn beside_share(&self, counts: &DayCounts) -> Markup {
        let end = if self.date == self.today { pace::end(self.times.now, counts, &self.figures.samples) } else { None };
        html! {
            @if let Some(end) = end {
                p class="quiet" {
                    "At the pace of the last 15 minutes "
                    @if end.with_scheduled { "the rest ends" } @else { "the pending ones end" }
                    " about " b { (self.times.brief(end.at)) }
                }
            } @else if self.date < self.today {
                p class="quiet" { "Archived: " (grouped(counts.archived.into())) }
            }
        }
    }

    /// The line of a tile below its number.
    fn note(&self, status: Status, counts: &DayCounts, of: i64) -> Markup {
        let count = counts.count(status);
        html! {
            @match status {
                Status::Scheduled if self.date > self.today => "not due yet",
                Status::Scheduled if self.held.switch || self.held.limit => "held",
                Status::Scheduled if self.date == self.today => "claimed when due",
                Status::Scheduled if count > 0 => b class="failed" { "overdue" },
                Status::Scheduled => "all were claimed",
                Status::Pending => "sent, no result yet",
                Status::Processed => (percent(count, of)),
                Status::Failed => {
                    (percent(count, of))
                    @match self.figures.failures.len() { 0 => {}, 1 => ", 1 reason", several => { ", " b { (several) " reasons" } } }
                },
                Status::Cancelled => "left out of the share",
            }
        }
    }

    fn line(&self, counts: &DayCounts) -> Markup {
        let begin = self.times.zone.start_of(self.date);
        let is_today = self.date == self.today;
        let points = points(begin, &self.figures.samples, is_today.then_some((self.times.now, counts)));
        panel(self.times, begin, &points, is_today)
    }

    /// The next dates with payments, and those on which the bank is closed although payments are due.
    fn next_dates(&self) -> Markup {
        let later = self.counters.range(self.date.plus_days(1)..).filter(|(date, _)| **date > self.date);
        let with_payments = later.filter(|(_, counters)| counters.counts.total() > 0);
        let closed = |date| self.mark(date).is_some();
        let shown: Vec<_> = with_payments
            .enumerate()
            .filter(|(place, (date, counters))| {
                *place < NEXT || (closed(**date) && counters.counts.count(Status::Scheduled) > 0)
            })
            .map(|(_, (date, counters))| (*date, counters.counts.total()))
            .take(2 * NEXT)
            .collect();
        let most = shown.iter().map(|(_, total)| *total).max().unwrap_or(0).max(1);
        let from = self.date.to_string();
        let ahead = if self.date == self.today { link("ahead", &[]) } else { link("ahead", &[("from", &from)]) };
        html! {
            section class="panel" {
                div class="head" { h2 { "Next dates" } a href=(ahead) { (DATES) " dates ahead" } }
                @if shown.is_empty() { p class="empty quiet" { "No payment is due in the " (DATES) " days after." } } @else {
                    table {
                        thead { tr { th scope="col" { "Date" } th scope="col" class="num" { "Payments" } th scope="col" class="num none" { "Log scale" } } }
                        tbody { @for (date, total) in shown { tr {
                            td { a class="n" href=(day_link(date)) { (self.times.date(date)) } @if let Some(mark) = self.mark(date) { " " small { (mark) } } @if self.to_redate.contains(&date) { (WAITS) } }
                            td class="num" { (grouped(total.into())) }
                            td class="num none" { svg width=(NEXT_BAR) height="10" aria-hidden="true" { rect class="ahead" width=((NEXT_BAR * length(total) / length(most)).max(LEAST)) height="10" rx="2" {} } }
                        } } }
                    }
                }
            }
        }
    }
}

/// The matrix of sums.
fn sums(counts: &DayCounts) -> Markup {
    let mut currencies: Vec<Currency> = counts.sums().map(|(currency, ..)| currency).collect();
    currencies.dedup();
    html! {
        section class="panel" {
            div class="head" {
                h2 { "Sums by currency and status" }
                p class="quiet" { "Counted within seconds, or later while " (COUNTS_BEHIND) " is on" }
            }
            table class="cards" role="table" {
                thead { tr role="row" {
                    th role="columnheader" scope="col" { "Currency" }
                    @for status in Status::ALL { th role="columnheader" scope="col" class="num" { (word(status)) } }
                    th role="columnheader" scope="col" class="num" { "All" }
                } }
                tbody role="rowgroup" { @for currency in currencies { tr role="row" {
                    th role="rowheader" scope="row" class="all" { (currency) }
                    @for status in Status::ALL { (sum(&word(status), counts.sum(currency, status), currency)) }
                    (total(Status::ALL.map(|status| counts.sum(currency, status)).iter().sum(), currency))
                } } }
            }
        }
    }
}

fn sum(label: &str, sum: i128, currency: Currency) -> Markup {
    html! {
        @if sum == 0 { td role="cell" class="num all zero none" data-l=(label) { "0" } } @else {
            td role="cell" class="num all" data-l=(label) { (major(sum, currency.decimals())) }
        }
    }
}

fn total(sum: i128, currency: Currency) -> Markup {
    html! { td role="cell" class="num b all" data-l="All" { (major(sum, currency.decimals())) } }
}
