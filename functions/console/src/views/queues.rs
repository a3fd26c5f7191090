//! The queues: the size of each, and some messages of those that nothing receives from.

use maud::{Markup, html};
use payments_http::query::invalid_parameter;
use payments_http::{Problem, Request};
use payments_model::{PaymentId, causes};
use serde::Deserialize;

use crate::function::Console;
use crate::guides::{
    DISPATCH_FAILURES, Place, REQUEST_DEAD_LETTERS, REQUESTS_WAITING, RESULT_DEAD_LETTERS, RESULTS_WAITING,
};
use crate::html::{foreign, grouped, heading, link, live_top, payment_link, top};
use crate::operations::{BankQueue, LastMove, OperationError, QueueState, SampledMessage};
use crate::panel::{ACTIONS, cards, empty, opens, panel};
use crate::times::Times;

/// The characters of a message that are shown. A request has up to 8 KB of its client's data.
const SHOWN: usize = 2_000;

impl Console {
    /// The view of all queues: a call for each, and one more for each that can be moved back.
    pub(crate) async fn queues(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        request.query(&[])?;
        let times = self.times();
        let states = BankQueue::ALL.map(|queue| self.operations.queue(queue));
        let states = futures::future::join_all(states).await;
        let states: Vec<_> =
            BankQueue::ALL.into_iter().zip(states).map(|(queue, it)| (queue, known(queue, it))).collect();
        let (letters, moving): (Vec<_>, Vec<_>) =
            states.into_iter().partition(|(queue, _)| BankQueue::UNRECEIVED.contains(queue));
        let columns = [("Queue", ""), ("Messages", "num"), ("In flight", "num")];
        let letter_columns = [columns[0], columns[1], columns[2], ("Last moved back", ""), ("Actions", ACTIONS)];
        Ok(html! {
            div class="stack" data-live data-hx-get="/console/views/queues" data-hx-trigger="every 15s" data-hx-target="#main" data-hx-swap="innerMorph" {
                (live_top(&heading("Queues"), times))
                (self.paused_notice())
                (panel(&html! { "Dead letters" }, &html! { "Nothing receives these. Somebody has to look" }, &cards(
                    "Queues that nothing receives from", &letter_columns,
                    &html! { @for (queue, state) in &letters { (letter_row(*queue, state.as_ref(), times)) } },
                )))
                (panel(&html! { "Under way" }, &html! { "SQS counts approximately. In flight: received, and not deleted yet" }, &cards(
                    "Queues with a receiver", &columns,
                    &html! { @for (queue, state) in &moving { tr { (moving_name(*queue, state.as_ref())) (numbers(state.as_ref())) } } },
                )))
            }
        })
    }

    /// The view of some messages of a queue: one call, which counts as a receive of each.
    pub(crate) async fn sample(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        const PARAMETER: &str = "queue";
        let queue: BankQueue = request
            .query(&[PARAMETER])?
            .get(PARAMETER)?
            .ok_or_else(|| invalid_parameter(PARAMETER, &"it is missing"))?;
        if !BankQueue::UNRECEIVED.contains(&queue) {
            let why = "a program receives from this queue, and a sample would count as a receive; choose request-dead-letters, result-dead-letters or dispatch-failures";
            return Err(invalid_parameter(PARAMETER, &why));
        }
        tracing::info!(by = %request.operator(), person = request.person(), %queue, "messages are shown");
        let messages = self.operations.sample(queue).await?;
        let times = self.times();
        Ok(html! {
            (top(&html! { h1 tabindex="-1" { (title(queue)) " " span class="quiet" { "a sample" } } }, times))
            p class="quiet" {
                "Up to ten messages, in no order, and another time perhaps others. They stay in the queue. See " (entry(queue)) ". "
                a href=(link("queues", &[])) { "All queues" }
            }
            @if messages.is_empty() {
                section class="panel" { (empty(&html! { b { "No message was returned." } " The queue is empty, or its messages are in flight: open the view again later." })) }
            }
            @for message in &messages { (shown(message, times)) }
        })
    }
}

/// The content of a queue; `None` if SQS did not return it. The other queues are shown all the same.
fn known(queue: BankQueue, state: Result<QueueState, OperationError>) -> Option<QueueState> {
    state
        .inspect_err(
            |error| tracing::error!(%queue, error = ?causes(error), "a queue is unknown to the console's view"),
        )
        .ok()
}

/// A row of a queue that nothing receives from.
fn letter_row(queue: BankQueue, state: Option<&QueueState>, times: Times) -> Markup {
    let last = state.and_then(|state| state.last_move.as_ref());
    html! { tr {
        (name(queue))
        (numbers(state))
        @match last {
            Some(last) => { td class="all" data-l="Last moved back" { span { (last_move(last, times)) } } }
            None => { td class="none quiet" { "not yet" } }
        }
        td class="act" { span class="row" {
            a class="button" href=(link("sample", &[("queue", queue.as_str())])) { "Sample" }
            @if queue.source().is_some() && state.is_none_or(|state| state.waiting > 0) { (opens("move-dead-letters", "Move back…", "", &[("queue", queue.as_str())])) }
        } }
    } }
}

/// The name of a queue, and its alarm.
fn name(queue: BankQueue) -> Markup {
    html! { th scope="row" class="all" { (title(queue)) small { "see " (entry(queue)) } } }
}

/// The name of a queue with a receiver, and for the requests whether their gate is open.
fn moving_name(queue: BankQueue, state: Option<&QueueState>) -> Markup {
    let gate = state.filter(|_| queue == BankQueue::Requests).map(|state| state.is_closed);
    html! { th scope="row" class="all" {
        (title(queue)) small { "see " (entry(queue)) }
        @match gate {
            Some(true) => { span class="pill warn" { "Gate closed" } small { "nobody can receive; what is in flight is the transaction service’s" } }
            Some(false) => { small { "gate open" } }
            None => {}
        }
    } }
}

/// The messages of a queue. Dead letters are a trouble, if there are any.
fn numbers(state: Option<&QueueState>) -> Markup {
    let cell = |label: &str, number: u64| {
        html! { td class="num all" data-l=(label) { span class=[(number == 0).then_some("zero")] { (grouped(number.into())) } } }
    };
    html! {
        @match state {
            Some(state) => { (cell("Messages", state.waiting)) (cell("In flight", state.in_flight)) }
            None => { td class="all num" colspan="2" { span class="pill warn" { "Unknown" } small { "the function’s log says why" } } }
        }
    }
}

/// A queue, in words.
pub(crate) fn title(queue: BankQueue) -> &'static str {
    match queue {
        BankQueue::Requests => "Requests",
        BankQueue::RequestDeadLetters => "Request dead letters",
        BankQueue::Results => "Settlement results",
        BankQueue::ResultDeadLetters => "Result dead letters",
        BankQueue::DispatchFailures => "Dispatch failures",
    }
}

/// The messages of a queue without a receiver, in words.
pub(crate) fn letters(queue: BankQueue) -> &'static str {
    match queue {
        BankQueue::Requests | BankQueue::RequestDeadLetters => "requests",
        BankQueue::Results | BankQueue::ResultDeadLetters => "results",
        BankQueue::DispatchFailures => "records that were not dispatched",
    }
}

/// The alarm of a queue's waiting messages.
pub(crate) fn entry(queue: BankQueue) -> Place {
    match queue {
        BankQueue::Requests => REQUESTS_WAITING,
        BankQueue::RequestDeadLetters => REQUEST_DEAD_LETTERS,
        BankQueue::Results => RESULTS_WAITING,
        BankQueue::ResultDeadLetters => RESULT_DEAD_LETTERS,
        BankQueue::DispatchFailures => DISPATCH_FAILURES,
    }
}

/// The last move of messages.
pub(crate) fn last_move(last: &LastMove, times: Times) -> Markup {
    let word = match last.status.as_str() {
        "RUNNING" => "Running",
        "COMPLETED" => "Done",
        "CANCELLING" | "CANCELLED" => "Stopped",
        "FAILED" => "Failed",
        other => other,
    };
    html! {
        @if let Some(at) = last.started_at { (times.brief(at)) " " }
        span class="quiet" {
            (word) ": " (grouped(last.moved.into()))
            @if let Some(of) = last.of { " of " (grouped(of.into())) }
            @if let Some(why) = &last.failure { small { (foreign(why)) } }
        }
    }
}

/// The ids that a message may name.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    payment_id: String,
}

fn shown(message: &SampledMessage, times: Times) -> Markup {
    let named = serde_json::from_str::<Named>(&message.body).ok();
    let payment: Option<PaymentId> = named.and_then(|named| named.payment_id.parse().ok());
    let rest = message.body.chars().count().saturating_sub(SHOWN);
    let heading = html! { @match message.sent_at { Some(at) => { "Sent " (times.aged(at)) }, None => "A message" } };
    let received = |receives| match receives {
        1 => "once".to_owned(),
        several => format!("{several} times"),
    };
    let note = html! {
        @if let Some(receives) = message.receives { "Received " (received(receives)) ", with this sample" }
    };
    panel(
        &heading,
        &note,
        &html! {
            @if let Some(id) = payment { p class="pad" { span { "Payment " (payment_link(id)) } } }
            pre tabindex="0" { (message.body.chars().take(SHOWN).collect::<String>()) }
            @if rest > 0 { p class="pad quiet" { (grouped(rest.try_into().unwrap_or(i128::MAX))) " more characters are not shown." } }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_requests_have_a_gate_and_a_closed_one_is_a_trouble() {
        let shown = |queue, is_closed| {
            let state = QueueState { is_closed, ..QueueState::default() };
            let html = moving_name(queue, Some(&state)).into_string();
            (html.contains("gate open"), html.contains("Gate closed"))
        };
        assert_eq!(shown(BankQueue::Requests, false), (true, false));
        assert_eq!(shown(BankQueue::Requests, true), (false, true));
        assert_eq!(shown(BankQueue::Results, true), (false, false));
        let unknown = moving_name(BankQueue::Requests, None).into_string();
        assert!(!unknown.contains("gate open"), "{unknown}");
    }
}
