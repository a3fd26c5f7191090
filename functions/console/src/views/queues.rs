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
use crate::html::{grouped, heading, instant, link, live_top, payment_link};
use crate::operations::{BankQueue, LastMove, OperationError, QueueState, SampledMessage};

/// The characters of a message that are shown. A request has up to 8 KB of its client's data.
const SHOWN: usize = 2_000;

impl Console {
    /// The view of all queues: a call for each, and one more for each that can be moved back.
    pub(crate) async fn queues(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        request.query(&[])?;
        let states = BankQueue::ALL.map(|queue| self.operations.queue(queue));
        let states = futures::future::join_all(states).await;
        Ok(html! {
            div data-live data-hx-get="/console/views/queues" data-hx-trigger="every 15s" data-hx-target="#main" data-hx-swap="innerMorph" {
                (live_top(&heading("Queues"), self.times()))
                (self.paused_notice())
                div class="scroll" tabindex="0" { table {
                    caption { "The numbers are approximate, as SQS counts them" }
                    thead { tr {
                        th scope="col" { "Queue" } th scope="col" class="number" { "Messages" }
                        th scope="col" class="number" { "In flight" }
                    } }
                    tbody { @for (queue, state) in BankQueue::ALL.into_iter().zip(states) { (row(queue, known(queue, state).as_ref())) } }
                } }
                p class="quiet" {
                    "In flight: received, and neither deleted nor visible again; the other messages are in the first column."
                }
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
        Ok(html! {
            (heading(title(queue)))
            p {
                "A sample: up to ten messages, in no order, and another time perhaps others. They stay in the queue. See " (entry(queue)) ". "
                a href=(link("queues", &[])) { "All queues" }
            }
            @if messages.is_empty() { p { "No message was returned: the queue is empty, or its messages are in flight. Load the view again." } }
            @for message in &messages { (shown(message)) }
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

fn row(queue: BankQueue, state: Option<&QueueState>) -> Markup {
    html! { tr {
        th scope="row" {
            (title(queue))
            @if state.is_some_and(|state| state.waiting > 0) { div { "See " (entry(queue)) } }
            @if let Some(last) = state.and_then(|state| state.last_move.as_ref()) {
                div class="quiet" { "Last moved back: " (last_move(last)) }
            }
            @if BankQueue::UNRECEIVED.contains(&queue) {
                div { a href=(link("sample", &[("queue", queue.as_str())])) { "Show a sample" } }
            }
            @if queue.source().is_some() {
                form data-action="move-dead-letters" {
                    input type="hidden" name="queue" value=(queue);
                    input type="hidden" name="step" value="preview";
                    button { "Move back…" }
                }
            }
        }
        @match state {
            Some(state) => {
                td class="number" { (grouped(state.waiting.into())) }
                td class="number" { (grouped(state.in_flight.into())) }
            }
            None => { td colspan="2" class="warn" { "unknown; the function's log says why" } }
        }
    } }
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
fn entry(queue: BankQueue) -> Place {
    match queue {
        BankQueue::Requests => REQUESTS_WAITING,
        BankQueue::RequestDeadLetters => REQUEST_DEAD_LETTERS,
        BankQueue::Results => RESULTS_WAITING,
        BankQueue::ResultDeadLetters => RESULT_DEAD_LETTERS,
        BankQueue::DispatchFailures => DISPATCH_FAILURES,
    }
}

/// The last move of messages.
pub(crate) fn last_move(last: &LastMove) -> Markup {
    html! {
        (last.status) ": " (grouped(last.moved.into()))
        @if let Some(of) = last.of { " of " (grouped(of.into())) }
        @if let Some(at) = last.started_at { ", begun " (instant(at)) }
        @if let Some(why) = &last.failure { ". " span class="warn" { (why) } }
    }
}

/// The ids that a message may name.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    payment_id: String,
}

fn shown(message: &SampledMessage) -> Markup {
    let named = serde_json::from_str::<Named>(&message.body).ok();
    let payment: Option<PaymentId> = named.and_then(|named| named.payment_id.parse().ok());
    let rest = message.body.chars().count().saturating_sub(SHOWN);
    html! {
        h2 {
            @match message.sent_at { Some(at) => { "Sent " (instant(at)) }, None => "A message" }
            @if let Some(receives) = message.receives { ", received " (if receives == 1 { "once".to_owned() } else { format!("{receives} times") }) ", this sample included" }
        }
        @if let Some(id) = payment { p { "Payment " (payment_link(id)) } }
        pre tabindex="0" { (message.body.chars().take(SHOWN).collect::<String>()) }
        @if rest > 0 { p class="quiet" { (rest) " more characters are not shown." } }
    }
}
