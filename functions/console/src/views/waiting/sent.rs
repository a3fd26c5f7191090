//! The requests of a pending payment, in words: `5 of 8 sent, last 12 h ago, next 07:05`.

use chrono::TimeDelta;
use maud::{Markup, html};
use payments_model::redrive::{NextRequest, NextStep, Requests};
use payments_model::{Head, UtcSecond};
use payments_store::Job;
use serde_json::Value;

use crate::html::grouped;
use crate::panel::{cards, empty, panel};
use crate::runs::{Runs, end, number};
use crate::times::Times;

/// The time from one scheduled redrive to the next.
const REDRIVE_EVERY: TimeDelta = TimeDelta::hours(1);

/// The requests of a pending payment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    requests: Requests,
    /// The time of the last request.
    pub(super) last_at: UtcSecond,
}

impl Sent {
    /// The requests of a payment. `None` if it is not pending.
    pub(super) fn from_head(head: &Head) -> Option<Self> {
        let requests = Requests::from_head(head)?;
        Some(Self { requests, last_at: requests.sent_again_at.unwrap_or(requests.since) })
    }

    pub(super) fn is_stuck(self, now: UtcSecond, most: u32) -> bool {
        self.requests.next_step(now, most) == NextStep::Stuck
    }

    /// The number of requests if none follows: `8 of 8 sent, none follows`.
    pub(super) fn used_up(self, most: u32) -> Markup {
        let sent = self.requests.attempt;
        html! { b { @if sent > most { (sent) " sent" } @else { (sent) " of " (most) " sent" } } ", none follows" }
    }

    /// The requests, the last one, and the next.
    pub(super) fn in_words(self, runs: &Runs, most: u32, times: Times) -> Markup {
        let last = times.age(self.last_at);
        match self.requests.next_request(most) {
            NextRequest::Operator(_) => html! { (self.used_up(most)) ", last " (last) },
            NextRequest::Redrive(from) => html! {
                (self.requests.attempt) " of " (most) " sent, last " (last) ", " b { "next " (times.brief(next_redrive(runs, from, times.now))) }
            },
        }
    }
}

/// The first scheduled redrive at an instant or later, which is not past: an hour after the last one, two, and so on.
fn next_redrive(runs: &Runs, from: UtcSecond, now: UtcSecond) -> UtcSecond {
    let from = from.max(now);
    let Some(last) = runs.job(Job::Redrive).map(|run| run.began_at).filter(|last| *last <= from) else { return from };
    let (waits, every) = ((from.as_chrono() - last.as_chrono()).num_seconds(), REDRIVE_EVERY.num_seconds());
    last.saturating_add(TimeDelta::seconds((waits + every - 1) / every * every))
}

/// The payments by the number of their last request, as the last redrive saw them.
pub(super) fn by_request(runs: &Runs, most: u32, times: Times) -> Markup {
    let columns = [("Request", ""), ("Payments", "num"), ("Oldest claimed", ""), ("Next request", "")];
    let Some(run) = runs.job(Job::Redrive) else {
        let none = empty(&html! { b { "No redrive has ended yet." } " It counts the payments each hour." });
        return panel(&html! { "Sent over an hour ago, no result yet" }, &html! {}, &none);
    };
    let note = html! { "counted at " (times.brief(run.began_at)) };
    let groups = run.outcome.as_ref().and_then(|outcome| outcome["requests"].as_array());
    let Some(groups) = groups else {
        return panel(&html! { "Sent over an hour ago, no result yet" }, &note, &empty(&end(run)));
    };
    let all: u64 = groups.iter().map(|group| number(group, "payments")).sum();
    panel(
        &html! { "Sent over an hour ago, no result yet " span class="quiet" { (grouped(all.into())) } },
        &note,
        &html! {
            @if groups.is_empty() { (empty(&html! { b { "Every request older than an hour has its result." } })) }
            @else { (cards("Payments by their last request", &columns, &html! { @for group in groups { (group_row(group, (runs, most), times)) } })) }
        },
    )
}

fn group_row(group: &Value, (runs, most): (&Runs, u32), times: Times) -> Markup {
    let attempt = u32::try_from(number(group, "attempt")).unwrap_or(u32::MAX);
    let since: Option<UtcSecond> = group["oldest"].as_str().and_then(|text| text.parse().ok());
    let next = since.map(|since| Requests { since, attempt, sent_again_at: None }.next_request(most));
    html! { tr {
        th scope="row" { @if attempt > most { (attempt) } @else { (attempt) " of " (most) } }
        td class="num end" { (grouped(number(group, "payments").into())) }
        td class="all" data-l="Oldest claimed" { span { @match since { Some(since) => (times.age(since)), None => "unknown" } } }
        td class="all" data-l="Next request" { span { @match next {
            Some(NextRequest::Redrive(from)) => { "from " (times.brief(next_redrive(runs, from, times.now))) },
            Some(NextRequest::Operator(_)) => { b { "none follows" } },
            None => "unknown",
        } } }
    } }
}
