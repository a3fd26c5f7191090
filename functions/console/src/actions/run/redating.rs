//! The preview of a redate: each closed date with its payments, and how many of them the last count would move.

use maud::{Markup, html};
use payments_http::Problem;
use payments_model::redate::Plan;
use payments_model::{BusinessDate, Status, Switch};
use payments_store::Job;
use serde_json::Value;

use crate::actions::preview::counted;
use crate::function::Console;
use crate::guides::HOLIDAY;
use crate::html::grouped;
use crate::panel::{cards, panel};
use crate::runs::{Runs, end, number};
use crate::times::Times;
use crate::views::dates::mark;

/// The numbers that a redate's preview showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The closed dates.
    pub(crate) dates: usize,
    /// Their payments that are scheduled, in all currencies.
    pub(crate) payments: u64,
}

impl Console {
    /// The dates whose payments a redate moves, each with its scheduled payments.
    pub(crate) async fn closed_dates(&self, plan: Plan) -> Result<Vec<(BusinessDate, i64)>, Problem> {
        let dates = plan.dates;
        let (Some(first), Some(last)) = (dates.first(), dates.last()) else { return Ok(Vec::new()) };
        let counters = self.store.counters(*first, *last).await?;
        let scheduled = |date| counters.get(&date).map_or(0, |known| known.counts.count(Status::Scheduled));
        Ok(dates.into_iter().map(|date| (date, scheduled(date))).collect())
    }

    /// The effect of a redate on these dates.
    pub(crate) fn redated(
        &self,
        dates: &[(BusinessDate, i64)],
        calendar: &str,
        (runs, switch): (&Runs, Option<&Switch>),
    ) -> Markup {
        if dates.is_empty() {
            return html! {
                p class="notice" { "The calendar is open on all these dates, or does not cover them, so no payment moves. Is the release with the new calendar deployed?" }
            };
        }
        let times = self.times();
        let outcome = runs.job(Job::Look).and_then(|run| run.outcome.as_ref());
        let columns = [("Closed date", ""), ("Why", ""), ("Scheduled", "num"), ("Would move", "num")];
        let rows = html! { @for (date, scheduled) in dates { tr {
            th scope="row" { (times.date(*date)) }
            td class="all quiet" { (mark(&self.config.business_days, *date, times).unwrap_or_default()) }
            td class="num all" data-l="Scheduled" { span class=[(*scheduled == 0).then_some("zero")] { (grouped((*scheduled).into())) } }
            td class="num all" data-l="Would move" { span class="zero" { (would_move(outcome, *date, calendar)) } }
        } } };
        html! {
            p {
                "Payments in this calendar’s currencies that are due on these dates move to an open date, if their rule, or the parameter DateRule, is "
                code { "following" } " or " code { "preceding" } ". Each move is an amendment and an event, and " b { "nothing takes it back" } ". See " (HOLIDAY) "."
            }
            p { b { (counted_so_far(runs, times)) } }
            @if dates.iter().any(|(date, _)| switch.is_some_and(|switch| switch.is_held(*date))) {
                p class="notice" { "Some of these dates are held, and a hold does not follow the payments: hold the open dates first, or they are claimed there." }
            }
            (panel(&html! { (counted(dates.len(), "closed date")) }, &html! { "scheduled: about, and in all currencies" }, &cards("Closed dates", &columns, &rows)))
        }
    }
}

/// The payments of a date that a count would move, by its outcome, which names the first 31 dates with some.
fn would_move(outcome: Option<&Value>, date: BusinessDate, calendar: &str) -> String {
    let date = date.to_string();
    let named = outcome.and_then(|outcome| outcome["waitingDates"].as_array());
    let found = named.into_iter().flatten().find(|found| found["date"] == *date && found["calendar"] == *calendar);
    match found {
        Some(found) => grouped(number(found, "count").into()),
        None if outcome.is_some_and(is_whole) => "none".to_owned(),
        None => "not counted".to_owned(),
    }
}

/// Whether a count names all dates with payments that would move.
fn is_whole(outcome: &Value) -> bool {
    let named = outcome["waitingDates"].as_array();
    let sum: u64 = named.into_iter().flatten().map(|date| number(date, "count")).sum();
    outcome["isComplete"] == true && sum == number(outcome, "waiting")
}

/// The result of the last count.
fn counted_so_far(runs: &Runs, times: Times) -> Markup {
    match runs.job(Job::Look) {
        Some(run) => html! { "At the last count, " (times.aged(run.ended_at)) ": " (end(run)) },
        None => html! { "Nobody has counted how many of them move: start a count first" },
    }
}

/// The numbers that a preview of a redate shows.
pub(crate) fn numbers(dates: &[(BusinessDate, i64)]) -> Shown {
    let payments = dates.iter().map(|(_, scheduled)| u64::try_from(*scheduled).unwrap_or_default()).sum();
    Shown { dates: dates.len(), payments }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_date_that_a_count_does_not_name_was_counted_only_if_the_count_names_all() {
        let counted = |waiting: u64, is_complete: bool| {
            json!({ "waiting": waiting, "isComplete": is_complete,
                "waitingDates": [{ "date": "2026-12-28", "calendar": "GB", "count": 1_200 }] })
        };
        for (outcome, date, calendar, want) in [
            (None, "2026-12-28", "GB", "not counted"),
            (Some(counted(1_200, true)), "2026-12-28", "GB", "1,200"),
            (Some(counted(1_200, true)), "2026-12-25", "GB", "none"),
            (Some(counted(1_200, true)), "2026-12-28", "T2", "none"),
            (Some(counted(1_201, true)), "2026-12-25", "GB", "not counted"),
            (Some(counted(1_200, false)), "2026-12-25", "GB", "not counted"),
        ] {
            assert_eq!(would_move(outcome.as_ref(), date.parse().unwrap(), calendar), want, "{outcome:?} {date}");
        }
    }
}
