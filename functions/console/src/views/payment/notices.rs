//! The troubles of a payment, what comes next, and the actions on it.

use maud::{Markup, html};
use payments_model::redrive::{NextRequest, NextStep, Requests};
use payments_model::{Finding, Head, Settlement, State, Status};

use crate::config::Paused;
use crate::guides::{CANCELLED_PROCESSED, CONFLICTING_RESULTS, PAUSE, PAYMENTS_STUCK_PENDING};
use crate::html::{amount, foreign, word};
use crate::times::{Times, span};

/// The requests of a pending payment, and whether another one follows.
pub(super) struct Sending {
    pub(super) requests: Requests,
    pub(super) max_attempts: u32,
    pub(super) times: Times,
}

impl Sending {
    /// Whether no request follows by itself.
    pub(super) fn is_used_up(&self) -> bool {
        matches!(self.requests.next_request(self.max_attempts), NextRequest::Operator(_))
    }

    /// Whether the wait after the last request is over, too.
    pub(super) fn is_stuck(&self) -> bool {
        self.requests.next_step(self.times.now, self.max_attempts) == NextStep::Stuck
    }

    /// The notice that no request follows, with the action that sends one more.
    fn notice(&self, head: &Head) -> Markup {
        let Requests { since, attempt, .. } = self.requests;
        let waited = (self.times.now.as_chrono() - since.as_chrono()).num_seconds();
        html! {
            div class=(if self.is_stuck() { "notice now" } else { "notice" }) {
                h2 { @if attempt > self.max_attempts { (attempt) " requests sent, none follows" } @else { (attempt) " of " (self.max_attempts) " requests sent, none follows" } }
                p {
                    "The transaction service has given no result for " (span(waited)) ". Ask it whether it knows this payment. "
                    "The service pays each payment at most once, so sending again is safe."
                }
                div class="row" {
                    form data-action="send-again" {
                        input type="hidden" name="payment" value=(head.payment_id);
                        input type="hidden" name="step" value="preview";
                        button class="primary" { "Send again…" }
                    }
                    span { "See " (PAYMENTS_STUCK_PENDING) }
                }
            }
        }
    }
}

/// The notices above the timeline: open findings, and requests that are used up.
pub(super) fn notices(head: &Head, findings: &[Finding], sending: Option<&Sending>, times: Times) -> Markup {
    html! {
        // Each, because each is closed with a reason of its own.
        @for finding in findings.iter().filter(|finding| finding.closed.is_none()) { (contradiction(head, finding, times)) }
        @if let Some(sending) = sending.filter(|sending| sending.is_used_up()) { (sending.notice(head)) }
    }
}

fn contradiction(head: &Head, finding: &Finding, times: Times) -> Markup {
    let stands = finding.stands.status();
    let at = head.moved.iter().rev().find(|entry| entry.status == stands).map(|entry| entry.at);
    let is_paid = finding.stands == State::Cancelled && matches!(finding.told.settlement, Settlement::Processed(_));
    html! {
        div class="notice now" {
            h2 { @if stands == Status::Cancelled { "A result contradicts the cancel" } @else { "Two results contradict each other" } }
            p {
                @if stands == Status::Cancelled { "The status " } @else { "The first, " }
                b { (word(stands)) } @if let Some(at) = at { " at " (times.brief(at)) }
                @if stands == Status::Cancelled { ", stands. At " } @else { ", stands. At " } (times.brief(finding.found_at)) " the transaction service said "
                b { (said(&finding.told.settlement)) }
                @if finding.told.money != finding.money { ", of " (amount(finding.told.money)) }
                @if finding.told.payee != finding.payee { ", to " (finding.told.payee) }
                ". "
                @if is_paid { "Money may have moved for a cancelled payment. " }
                "Ask the service which is true before you tell anybody. Nothing is sent again."
            }
            div class="row" {
                form data-action="close-finding" {
                    input type="hidden" name="payment" value=(head.payment_id);
                    input type="hidden" name="hash" value=(finding.told.hash());
                    input type="hidden" name="step" value="preview";
                    button { "Close the finding…" }
                }
                span { "See " @if is_paid { (CANCELLED_PROCESSED) } @else { (CONFLICTING_RESULTS) } }
            }
        }
    }
}

fn said(settlement: &Settlement) -> Markup {
    html! {
        @match settlement {
            Settlement::Processed(id) => { "Processed, transaction " span class="id any" { (id) } }
            Settlement::Failed(failure) => { "Failed, " (foreign(failure.reason())) }
        }
    }
}

/// The first part of the timeline: what comes next, if anything does.
pub(super) fn next(head: &Head, sending: Option<&Sending>, paused: Paused, times: Times) -> Markup {
    let is_paused = paused != Paused::None;
    let (at, is_wrong, body, note) = match (head.state.status(), sending) {
        (Status::Scheduled, _) => {
            let due = head.claimable_from();
            let is_due = due <= times.now;
            let body = html! { @if is_due { "The next sweep claims it, because it is due" } @else { "Due " (times.at(due)) ", when the sweep claims it" } };
            (Some(due).filter(|_| !is_due), is_paused && is_due, body, html! { "The sweep runs each five minutes" })
        }
        (Status::Pending, Some(sending)) => match sending.requests.next_request(sending.max_attempts) {
            NextRequest::Redrive(at) => {
                let then = sending.requests.next_step(at.max(times.now), sending.max_attempts);
                let number = if let NextStep::Redrive(number) = then { number } else { sending.requests.attempt + 1 };
                let body = html! { "Request " (number) " of " (sending.max_attempts) ", if no result comes" };
                let note = html! { "The first redrive from " (times.at(at)) " on sends it; redrives run each hour" };
                (Some(at), is_paused, body, note)
            }
            NextRequest::Operator(_) => (
                None,
                true,
                html! { b { "Nothing is sent again" } " unless somebody does" },
                html! { "A result may still come" },
            ),
        },
        (status, _) if status.is_settled() && head.unreported => {
            (None, false, html! { "In the next report" }, html! {})
        }
        _ => return html! {},
    };
    html! {
        h3 { "Next" }
        ol { li class=[is_wrong.then_some("wrong")] {
            @match at { Some(at) => (times.minute(at)), None => span class="quiet" { @if is_wrong { "none" } @else { "soon" } } }
            i {}
            div {
                (body)
                @if is_paused { small { b { "Sending is paused." } " See " (PAUSE) } }
                @else if !note.0.is_empty() { small { (note) } }
            }
        } }
    }
}
