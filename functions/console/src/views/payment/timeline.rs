//! The timeline of a payment, newest first: statuses, amendments, requests, results, events and deliveries.

use maud::{Markup, html};
use payments_model::redrive::{NextRequest, Requests};
use payments_model::{
    Actor, ActorKind, Details, Finding, Head, MoveReason, Settlement, State, Status, TrailEntry, UtcSecond,
};

use crate::html::{amount, foreign, link, status, word};
use crate::times::{Times, span};
use crate::views::payment::events::{Delivery, Seen, of_payment};
use crate::views::payment::found::Found;

/// A part of the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Statuses, amendments and results.
    Money,
    Requests,
    Webhooks,
}

/// An entry of the timeline.
pub(super) struct Entry {
    at: UtcSecond,
    /// The order within a second.
    rank: u32,
    kind: Kind,
    /// Whether the time is derived from the schedule.
    is_about: bool,
    is_wrong: bool,
    body: Markup,
    note: Option<Markup>,
    who: String,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Money, Self::Requests, Self::Webhooks];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Money => "money",
            Self::Requests => "requests",
            Self::Webhooks => "webhooks",
        }
    }
}

impl Entry {
    fn new(at: UtcSecond, rank: u32, kind: Kind, body: Markup, who: &str) -> Self {
        Self { at, rank, kind, is_about: false, is_wrong: false, body, note: None, who: who.to_owned() }
    }

    fn with_note(mut self, note: Markup) -> Self {
        self.note = Some(note);
        self
    }

    fn shown(&self, times: Times) -> Markup {
        let class = if self.is_wrong {
            Some("wrong")
        } else if self.kind == Kind::Money {
            Some("money")
        } else {
            None
        };
        html! {
            li class=[class] {
                @if self.is_about { (times.minute(self.at)) } @else { (times.clock(self.at)) }
                i {}
                div { (self.body) @if let Some(note) = &self.note { small { (note) } } }
                @if !self.who.is_empty() { span class="who" { (foreign(&self.who)) } }
            }
        }
    }
}

/// The actor of a change, in words.
pub(super) fn who(actor: &Actor) -> String {
    let name = actor.name();
    match actor.kind() {
        ActorKind::Client => format!("client {name}"),
        ActorKind::Bank => name.to_owned(),
        ActorKind::Operator => format!("operator {name}"),
        ActorKind::TransactionService => "transaction service".to_owned(),
        ActorKind::File => format!("file {name}"),
    }
}

/// All entries of a payment, the newest first.
pub(super) fn entries(found: &Found, head: &Head, times: Times, max_attempts: u32) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let steps = u32::try_from(head.moved.len()).unwrap_or_default();
    for (place, entry) in (0_u32..).zip(head.trail()) {
        let version = if place == 0 { 1 } else { head.version.saturating_sub(steps - place) };
        entries.push(moved(head, &entry, version, times));
    }
    amendments(found, head, times, &mut entries);
    requests(head, max_attempts, &mut entries);
    for finding in found.findings.iter() {
        result(finding, &mut entries);
    }
    let chain = found.chain.as_deref().unwrap_or_default();
    for event in of_payment(head, found.first.as_ref(), chain) {
        let rank = event.version * 10 + 5;
        let of_state = |wanted| -> Vec<&Seen> {
            found.endpoints.iter().filter(|seen| seen.delivery(&event) == Some(wanted)).collect()
        };
        let delivered = of_state(Delivery::Delivered);
        let name = html! { "Event " b { (event.kind.as_str()) } };
        if !delivered.is_empty() {
            let body = html! { (name) " delivered to " (endpoints(&delivered)) };
            entries.push(Entry::new(event.at, rank, Kind::Webhooks, body, "webhooks"));
        }
        for seen in of_state(Delivery::Waits) {
            let (pill, why) = waits(seen, seen.refuses(&event), times);
            let body = html! { (name) " to " (endpoints(&[seen])) " " span class="pill off" { (pill) } };
            entries.push(Entry::new(event.at, rank, Kind::Webhooks, body, "webhooks").with_note(why));
        }
    }
    for seen in &found.endpoints {
        for skipped in seen.skipped(head.payment_id) {
            let body = html! { "An event was skipped for " (endpoints(&[seen])) };
            entries.push(Entry::new(skipped.at, u32::MAX, Kind::Webhooks, body, &who(&skipped.by)));
        }
    }
    entries.sort_by_key(|entry| std::cmp::Reverse((entry.at, entry.rank)));
    entries
}

fn endpoints(seen: &[&Seen]) -> Markup {
    html! {
        @for (place, seen) in seen.iter().enumerate() {
            @if place > 0 { ", " }
            a href=(link("endpoints", &[])) { (seen.endpoint.id) }
        }
    }
}

/// The reason why an event waits: a word, and a sentence.
fn waits(seen: &Seen, is_refused: bool, times: Times) -> (&'static str, Markup) {
    let Seen { endpoint, state, .. } = seen;
    if endpoint.disabled(state).is_some() {
        return ("Not sent", html! { "The endpoint is disabled; the event waits" });
    }
    if let (true, Some(error)) = (is_refused, &state.progress.last_error) {
        let next = state.progress.next_try_at;
        return (
            "Not accepted",
            html! {
                (error.outcome.kind) @if let Some(status) = error.outcome.status { " " (status) } " at " (times.brief(error.at))
                @if let Some(next) = next { ", next try " (times.brief(next)) }
            },
        );
    }
    ("Waits", html! { "Earlier events of the endpoint are first" })
}

/// A status that the payment got.
fn moved(head: &Head, entry: &TrailEntry, version: u32, times: Times) -> Entry {
    let body = html! {
        (status(entry.status)) " "
        @match (entry.status, &head.state) {
            (Status::Scheduled, _) => { "Created" }
            (Status::Pending, _) => { "Claimed" }
            (Status::Processed, State::Processed(id)) => { "Transaction " span class="id any" { (id) } }
            (Status::Failed, State::Failed(failure)) => { (failure.code()) " " (foreign(failure.reason())) }
            (Status::Cancelled, _) => { "Never paid" }
            _ => {}
        }
        @if entry.status == Status::Scheduled && head.amendment.is_none() { " for " (times.date(head.due_date)) }
    };
    Entry::new(entry.at, version * 10, Kind::Money, body, &who(&entry.by))
}

/// The amendments: by their details, or the last one by the head if the details cannot be read.
fn amendments(found: &Found, head: &Head, times: Times, entries: &mut Vec<Entry>) {
    match &found.chain {
        Ok(chain) => {
            let before = chain.iter().skip(1).map(Some).chain([found.first.as_ref()]);
            for (details, before) in chain.iter().zip(before) {
                let version = details.amendment.map_or(1, |amendment| amendment.name.version);
                let body = amended(before, details, times);
                entries.push(Entry::new(
                    details.created_at,
                    version * 10,
                    Kind::Money,
                    body,
                    &who(&details.created_by),
                ));
            }
        }
        Err(_) => {
            if let (Some(amended), Some(name)) = (&head.amended, head.amendment) {
                let body = html! { b { "Amended: " } (amended.changed.join(", ")) };
                entries.push(Entry::new(amended.at, name.version * 10, Kind::Money, body, &who(&amended.by)));
            }
        }
    }
}

/// The changes of an amendment, with the values before and after.
fn amended(before: Option<&Details>, details: &Details, times: Times) -> Markup {
    let due = |details: &Details| html! { (times.at(details.due_at)) };
    if details.created_by.is_redate() {
        return html! {
            b { "Moved: " }
            @if let Some(before) = before { "due " (due(before)) " to " } (due(details))
            @if let Some(moved) = &details.moved { ", because " (why_moved(moved.reason)) }
        };
    }
    let Some(before) = before else { return html! { b { "Amended" } ", and what it was before cannot be read" } };
    let changes = before.changes(details);
    let (old, new) = (&before.instruction, &details.instruction);
    html! {
        b { "Amended: " }
        @for (place, field) in changes.iter().enumerate() {
            @if place > 0 { ", " }
            @match *field {
                "amountMinor" => { "amount " (amount(old.money)) " to " (amount(new.money)) }
                "currency" if changes.contains(&"amountMinor") => "currency",
                "currency" => { "amount " (amount(old.money)) " to " (amount(new.money)) }
                "payeeAccountId" => { "payee " span class="any" { (old.payee) } " to " span class="any" { (new.payee) } }
                "scheduledFor" => { "due " (due(before)) " to " (due(details)) }
                "reference" => { "reference " (text(old.reference.as_ref())) " to " (text(new.reference.as_ref())) }
                "data" => "the client’s data",
                "dateRule" => "the date rule",
                other => (other),
            }
        }
    }
}

fn text(reference: Option<&payments_model::Reference>) -> &str {
    reference.map_or("none", |reference| reference.as_str())
}

/// The reason of a move of the due time.
pub(super) fn why_moved(reason: MoveReason) -> &'static str {
    match reason {
        MoveReason::Weekend => "the date is a weekend",
        MoveReason::Holiday => "the date is a holiday",
        MoveReason::CutOff => "the cut-off had passed",
    }
}

/// The requests. Only the time of the last one is stored, while the payment is pending; the schedule gives those before it. An
/// operator's requests before the last one are left out, because nothing says when they were sent.
fn requests(head: &Head, max_attempts: u32, entries: &mut Vec<Entry>) {
    let claimed = head.moved.iter().find(|entry| entry.status == Status::Pending).map(|entry| entry.at);
    let (Some(since), Some(last)) = (claimed, head.dispatch_attempt) else { return };
    let most = max_attempts.max(1);
    for attempt in 1..=last.min(most) {
        let exact = if attempt == 1 { Some(since) } else { head.sent_again_at.filter(|_| attempt == last) };
        let before = Requests { since, attempt: attempt - 1, sent_again_at: None };
        let at = match (exact, before.next_request(u32::MAX)) {
            (Some(at), _) => at,
            (None, NextRequest::Redrive(at) | NextRequest::Operator(at)) => at,
        };
        let sender = if attempt == 1 { "dispatch" } else { "redrive" };
        let waited = (at.as_chrono() - since.as_chrono()).num_seconds();
        let body = html! { "Request " (attempt) " of " (max_attempts) " sent" };
        let mut entry = Entry::new(at, rank_of_requests(head) + attempt, Kind::Requests, body, sender);
        entry.is_about = exact.is_none();
        if attempt > 1 {
            entry.note = Some(html! {
                "After " (span(waited)) " without a result"
                @if entry.is_about { ", time estimated" }
            });
        }
        entries.push(entry);
    }
    if let Some(at) = head.sent_again_at.filter(|_| last > most) {
        let body = html! { "Request " (last) " sent" };
        let entry = Entry::new(at, rank_of_requests(head) + last, Kind::Requests, body, "operator");
        entries.push(entry.with_note(html! { "Sent again by an operator; the audit says who" }));
    }
}

/// The rank of requests: after the claim, and before the settlement.
fn rank_of_requests(head: &Head) -> u32 {
    let settled = u32::from(head.state.status().is_settled());
    (head.version - settled) * 10 + 1
}

/// A contradicting result, and the end of its finding.
fn result(finding: &Finding, entries: &mut Vec<Entry>) {
    let told = &finding.told;
    let body = html! {
        (outcome(&told.settlement))
        @if told.money != finding.money || told.payee != finding.payee { ", " (amount(told.money)) " to " (told.payee) }
        " " span class="pill stop" { "Contradicts" }
    };
    let mut entry = Entry::new(finding.found_at, u32::MAX - 1, Kind::Money, body, "transaction service");
    entry.is_wrong = true;
    entries.push(entry.with_note(html! { "Not applied: " (word(finding.stands.status())) " stands" }));
    if let Some(closed) = &finding.closed {
        let body = html! { b { "Finding closed" } ": " (foreign(&closed.reason)) };
        entries.push(Entry::new(closed.at, u32::MAX, Kind::Money, body, &who(&closed.by)));
    }
}

/// A result of the transaction service, in words.
pub(super) fn outcome(settlement: &Settlement) -> Markup {
    html! {
        @match settlement {
            Settlement::Processed(id) => { b { "Result: Processed" } ", transaction " span class="id any" { (id) } }
            Settlement::Failed(failure) => { b { "Result: Failed" } ", " (failure.code()) " " (foreign(failure.reason())) }
        }
    }
}

/// The panel of the timeline: what comes next, and then each day.
pub(super) fn panel(
    next: &Markup,
    entries: &[Entry],
    shown: Option<Kind>,
    own: &[(&str, &str)],
    times: Times,
) -> Markup {
    let count = |kind: Option<Kind>| entries.iter().filter(|entry| kind.is_none_or(|kind| entry.kind == kind)).count();
    let target = |kind: Option<Kind>| {
        let arguments: Vec<_> = own.iter().copied().chain(kind.map(|kind| ("show", kind.name()))).collect();
        link("payment", &arguments)
    };
    let title = |kind: Option<Kind>| match kind {
        None => "All",
        Some(Kind::Money) => "Money",
        Some(Kind::Requests) => "Requests",
        Some(Kind::Webhooks) => "Webhooks",
    };
    let kinds = [None].into_iter().chain(Kind::ALL.map(Some)).filter(|kind| kind.is_none() || count(*kind) > 0);
    let visible: Vec<&Entry> = entries.iter().filter(|entry| shown.is_none_or(|kind| entry.kind == kind)).collect();
    let days = visible.chunk_by(|one, other| times.zone.date_of(one.at) == times.zone.date_of(other.at));
    html! {
        section class="panel" {
            div class="head" {
                h2 { "What happened" }
                p class="row" { @for kind in kinds {
                    @let is_shown = kind == shown;
                    a href=(target(kind)) aria-current=[is_shown.then_some("true")] class=[is_shown.then_some("b")] { (title(kind)) " " (count(kind)) }
                    " "
                } }
            }
            div class="line" {
                @if shown.is_none() { (next) }
                @for day in days {
                    h3 { (times.day_of(day[0].at)) }
                    ol { @for entry in day { (entry.shown(times)) } }
                }
            }
        }
    }
}
