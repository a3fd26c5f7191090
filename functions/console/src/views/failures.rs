//! Failures of a date by reason, as the reports counted them.

use std::cmp::Reverse;

use maud::{Markup, html};
use payments_model::{BusinessDate, Status};
use payments_store::{DayFigures, OTHER};

use crate::html::{grouped, link};
use crate::reasons::reason;
use crate::views::dates::list_link;
use crate::views::share::percent;

/// Failures with one reason.
pub(crate) struct Group {
    code: String,
    count: i64,
}

/// The failures of a date by reason, the most first.
pub(crate) fn groups(figures: &DayFigures) -> Vec<Group> {
    let group =
        |(code, count): (&String, &u64)| Group { code: code.clone(), count: i64::try_from(*count).unwrap_or(i64::MAX) };
    let mut groups: Vec<Group> = figures.failures.iter().map(group).collect();
    groups.sort_by_key(|group| Reverse(group.count));
    groups
}

impl Group {
    /// The reason in words, which leads to the payments, unless it stands for several codes.
    fn words(&self, date: BusinessDate) -> Markup {
        let date = date.to_string();
        let list = [("date", date.as_str()), ("status", Status::Failed.as_str()), ("code", &self.code)];
        html! { @if self.code == OTHER { "Further codes" } @else { a href=(link("list", &list)) { (reason(&self.code)) } } }
    }
}

/// The panel of a day with so many failed payments.
pub(crate) fn panel(date: BusinessDate, groups: &[Group], failed: i64) -> Markup {
    let reported: i64 = groups.iter().fold(0, |sum, group| sum.saturating_add(group.count));
    let unreported = failed - reported;
    html! {
        section class="panel" {
            div class="head" { h2 { "Failed, by reason" } a href=(list_link(date, Status::Failed)) { "All " (grouped(failed.into())) } }
            table { tbody {
                @for group in groups { (row(&group.words(date), group.count, failed)) }
                @if unreported > 0 { (row(&html! { span class="quiet" { "Not counted by reason" } }, unreported, failed)) }
            } }
        }
    }
}

fn row(words: &Markup, count: i64, failed: i64) -> Markup {
    html! { tr {
        td { (words) }
        td class="num" { (grouped(count.into())) }
        td class="num quiet" { (percent(count, failed)) }
    } }
}

/// The reasons above the list of failed payments.
pub(crate) fn line(date: BusinessDate, groups: &[Group]) -> Markup {
    html! {
        @if !groups.is_empty() {
            p class="row reasons" {
                span class="quiet" { "In reports:" }
                @for group in groups { span { (group.words(date)) " " span class="quiet" { (grouped(group.count.into())) } } }
            }
        }
    }
}
