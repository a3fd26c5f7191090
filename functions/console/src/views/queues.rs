//! The queues: how much is in each, and some messages of those that nothing receives from.

use maud::{Markup, html};
use payments_http::request::invalid_parameter;
use payments_http::{Problem, Request};
use payments_model::PaymentId;
use serde::Deserialize;

use crate::function::Console;
use crate::html::{grouped, heading, instant, link, payment_link};
use crate::operations::{BankQueue, LastMove, QueueState, SampledMessage};

/// How much of a message is shown, in characters. A request has up to 8 KB of its client's data.
const SHOWN: usize = 2_000;

impl Console {
    /// The view of all queues: a call for each, and one more for each that can be moved back.
    pub(crate) async fn queues(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        request.query(&[])?;
        let states = BankQueue::ALL.map(|queue| self.operations.queue(queue));
        let states = futures::future::try_join_all(states).await?;
        Ok(html! {
            div data-live data-hx-get="/console/views/queues" data-hx-trigger="every 15s" data-hx-target="#main" data-hx-swap="innerMorph" {
                (heading("Queues"))
                (self.paused_notice())
                div class="scroll" tabindex="0" { table {
                    caption { "About as many messages, as SQS counts them" }
                    thead { tr {
                        th scope="col" { "Queue" } th scope="col" class="number" { "Waiting" }
                        th scope="col" class="number" { "In flight" } th scope="col" { "Last moved back" } th scope="col" { "More" }
                    } }
                    tbody { @for (queue, state) in BankQueue::ALL.into_iter().zip(states) { (row(queue, &state)) } }
                } }
                p class="quiet" {
                    "In flight is what was received and is not done yet. The runbook says what to do with dead letters, under the alarm of their queue."
                }
            }
        })
    }

    /// The view of some messages of a queue: one call, which counts as a receive of each.
    pub(crate) async fn letters(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        const PARAMETER: &str = "queue";
        let queue: BankQueue = request
            .query(&[PARAMETER])?
            .get(PARAMETER)?
            .ok_or_else(|| invalid_parameter(PARAMETER, &"it is missing"))?;
        if !BankQueue::UNRECEIVED.contains(&queue) {
            let why = "its messages are received by a program, and looking at them would count as that";
            return Err(invalid_parameter(PARAMETER, &why));
        }
        let messages = self.operations.sample(queue).await?;
        Ok(html! {
            (heading(title(queue)))
            p {
                "A sample: up to ten messages, in no order, and another time perhaps others. They stay in the queue. "
                a href=(link("queues", &[])) { "All queues" }
            }
            @if messages.is_empty() { p { "SQS returned none. A message that was just looked at comes again in a moment." } }
            @for message in &messages { (shown(message)) }
        })
    }
}

fn row(queue: BankQueue, state: &QueueState) -> Markup {
    html! { tr {
        th scope="row" { (title(queue)) }
        td class="number" { (grouped(state.waiting.into())) }
        td class="number" { (grouped(state.in_flight.into())) }
        td { @if let Some(last) = &state.last_move { (last_move(last)) } }
        td {
            @if BankQueue::UNRECEIVED.contains(&queue) {
                a href=(link("letters", &[("queue", queue.as_str())])) { "Look at some" }
            }
            @if queue.source().is_some() {
                form data-action="move-dead-letters" {
                    input type="hidden" name="queue" value=(queue);
                    input type="hidden" name="step" value="preview";
                    button { "Move back…" }
                }
            }
        }
    } }
}

/// What a queue holds, in words.
pub(crate) fn title(queue: BankQueue) -> &'static str {
    match queue {
        BankQueue::Requests => "Requests to the transaction service",
        BankQueue::RequestDeadLetters => "Requests that it could not process",
        BankQueue::Results => "Settlement results",
        BankQueue::ResultDeadLetters => "Settlement results that could not be processed",
        BankQueue::DispatchFailures => "Stream records that could not be dispatched",
    }
}

/// How messages were, or are, moved back.
pub(crate) fn last_move(last: &LastMove) -> Markup {
    html! {
        (last.status) ": " (grouped(last.moved.into()))
        @if let Some(of) = last.of { " of " (grouped(of.into())) }
        @if let Some(at) = last.started_at { ", begun " (instant(at)) }
        @if let Some(why) = &last.failure { ". " span class="warn" { (why) } }
    }
}

/// What a message may name.
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
            @if let Some(receives) = message.receives { ", received " (receives) " times" }
        }
        @if let Some(id) = payment { p { "Payment " (payment_link(id)) } }
        pre tabindex="0" { (message.body.chars().take(SHOWN).collect::<String>()) }
        @if rest > 0 { p class="quiet" { (rest) " more characters are not shown." } }
    }
}
