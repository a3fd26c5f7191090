//! The facts of a payment, its versions, and its client's data.

use maud::{Markup, html};
use payments_model::{DateRule, Details, Head, Instruction, PaymentData, ScheduledFor, Status};

use crate::html::{amount, copied, fact, foreign, grouped, link};
use crate::times::Times;
use crate::views::payment::found::Found;
use crate::views::payment::timeline::{who, why_moved};

/// The panel of facts. Without a head, the first details say what is known.
pub(super) fn panel(found: &Found, times: Times, max_attempts: u32) -> Markup {
    let in_force = found.in_force();
    html! {
        div class="panel" {
            dl class="facts" {
                @match &found.head {
                    Some(head) => (of_head(head, in_force, times, max_attempts)),
                    None => { @if let Some(first) = &found.first { (of_details(first, times)) } }
                }
                (fact("Payment id", &copied(&found.id.to_string())))
            }
            (more(found, in_force, times))
            (versions(found, times))
            (data(found))
        }
    }
}

fn of_head(head: &Head, in_force: Option<&Details>, times: Times, max_attempts: u32) -> Markup {
    let status = head.state.status();
    html! {
        @if let Some(reference) = &head.reference { (fact("Reference", &html! { (reference) })) }
        (fact("Due", &html! {
            a href=(link("day", &[("date", &head.due_date.to_string())])) { (times.at(head.due_at)) }
            " " span class="quiet" { (times.age(head.due_at)) }
            @if let Some(moved) = in_force.and_then(|details| details.moved.as_ref()) {
                small {
                    "Moved: " (why_moved(moved.reason))
                    @if let Some(calendar) = &moved.calendar { ", by the calendar " (calendar.id()) " of " (calendar.version()) }
                }
            }
        }))
        (fact("Asked for", &asked(head.scheduled_for, times)))
        @if let Some(settled) = head.settled_at() { (fact("Settled", &times.aged(settled))) }
        @if let Some(failure) = head.failure() { (fact("Reason", &html! { (failure.code()) " " (foreign(failure.reason())) })) }
        (fact("Requests", &requests(head, times, max_attempts)))
        @if let Some(id) = head.transaction_id() { (fact("Transaction", &copied(id.as_str()))) }
        @if status.is_settled() {
            (fact("Report", &html! { @if head.unreported { "not reported yet" } @else { "reported" } }))
        }
    }
}

fn of_details(first: &Details, times: Times) -> Markup {
    let Instruction { reference, scheduled_for, .. } = &first.instruction;
    html! {
        @if let Some(reference) = reference { (fact("Reference", &html! { (reference) })) }
        (fact("Asked for", &asked(*scheduled_for, times)))
        (fact("Created", &times.aged(first.created_at)))
    }
}

/// The date or the instant that the client asked for.
fn asked(scheduled_for: ScheduledFor, times: Times) -> Markup {
    html! {
        @match scheduled_for {
            ScheduledFor::Date(date) => (times.date(date)),
            ScheduledFor::Instant(_) => (scheduled_for),
        }
    }
}

/// The requests: how many were sent, and whether another one follows.
fn requests(head: &Head, times: Times, max_attempts: u32) -> Markup {
    html! {
        @match (head.state.status(), head.dispatch_attempt) {
            (Status::Scheduled, _) => { "Not sent yet; due " (times.at(head.due_at)) }
            (Status::Cancelled, _) => "not sent: cancelled before",
            (_, None) => "Unknown",
            (_, Some(sent)) if sent > max_attempts => { (sent) " sent" @if head.state.status() == Status::Pending { ", none follows" } }
            (Status::Pending, Some(sent)) if sent == max_attempts => { (sent) " of " (max_attempts) " sent, none follows" }
            (_, Some(sent)) => { (sent) " of " (max_attempts) " sent" }
        }
    }
}

fn more(found: &Found, in_force: Option<&Details>, times: Times) -> Markup {
    let Found { first, head, .. } = found;
    html! {
        details class="fold" {
            summary { "More details" }
            dl class="facts" {
                @if let Some(first) = first { (fact("Created by", &foreign(who(&first.created_by)))) }
                @if let Some(head) = head {
                    (fact("Created", &times.at(head.created_at())))
                    (fact("Version", &html! { (head.version) }))
                }
                @if let Some(details) = in_force {
                    (fact("Date rule", &html! { (details.instruction.date_rule.map_or("the bank’s", DateRule::as_str)) }))
                }
                @if let Some(head) = head { (fact("Shard", &html! { (head.shard.get()) })) }
            }
        }
    }
}

/// The versions of the content, the latest first, if there are several.
fn versions(found: &Found, times: Times) -> Markup {
    let (Some(first), Ok(chain)) = (&found.first, &found.chain) else { return html! {} };
    if chain.is_empty() {
        return html! {};
    }
    html! {
        details class="fold" {
            summary { (chain.len() + 1) " versions of the content" }
            table {
                thead { tr { th scope="col" { "Version" } th scope="col" class="num" { "Amount" } th scope="col" { "To, due" } } }
                tbody { @for (place, details) in chain.iter().chain([first]).enumerate() { tr {
                    td { (details.amendment.map_or(1, |amendment| amendment.name.version)) @if place == 0 { small { "in force" } } }
                    td class="amt" { (amount(details.instruction.money)) }
                    td { (details.instruction.payee) small { (times.at(details.due_at)) } }
                } } }
            }
        }
    }
}

/// The client's own data, as the client sent it.
fn data(found: &Found) -> Markup {
    let Some(Ok(PaymentData::Text(text))) = &found.data else { return html! {} };
    let bytes = i128::try_from(text.as_str().len()).unwrap_or_default();
    html! {
        details class="fold" {
            summary { "Client’s data, " (grouped(bytes)) " bytes" }
            pre tabindex="0" { (text.as_str()) }
        }
    }
}
