//! Moving dead letters back to the queue from which they came.

use maud::html;
use payments_http::{Form, Problem, invalid_field};

use crate::actions::preview::{Buttons, Preview, counted};
use crate::actions::standstill::Standstill;
use crate::function::Console;
use crate::guides::MOVE_BACK;
use crate::html::{fact, grouped, link};
use crate::operations::{BankQueue, MoveBack};
use crate::views::queues::{last_move, title as queue_title};

/// The longest name of a queue, in bytes.
const MAX_QUEUE_BYTES: usize = 40;

/// Reads the queue of dead letters, and returns the queue from which they came.
pub(super) fn read(form: &mut Form) -> Result<BankQueue, Problem> {
    const FIELD: &str = "queue";
    let queue: BankQueue = form.get(FIELD, MAX_QUEUE_BYTES)?;
    match queue.source() {
        Some(_) => Ok(queue),
        None => Err(invalid_field(
            FIELD,
            &"its messages cannot be moved back; choose request-dead-letters or result-dead-letters",
        )),
    }
}

/// The heading of a move's preview and outcome.
pub(super) fn title(queue: BankQueue) -> String {
    let from = queue_title(queue).to_ascii_lowercase();
    format!("Move the {from} back to the queue {}", queue.source().map_or("", queue_title))
}

impl Console {
    /// Shows how many messages there are: one or two calls.
    pub(super) async fn preview_letters(&self, queue: BankQueue) -> Result<Preview, Problem> {
        if let Some(standstill) = self.standstill_of(queue).await? {
            return Ok(standstill.preview());
        }
        let (state, times) = (self.operations.queue(queue).await?, self.times());
        let shown = html! {
            section class="panel" { dl class="facts" {
                (fact("From", &html! { (queue_title(queue)) }))
                (fact("To", &html! { (queue.source().map_or("", queue_title)) }))
                (fact("Messages", &html! { b { "about " (grouped(state.waiting.into())) } ", " a href=(link("sample", &[("queue", queue.as_str())])) { "look at a sample" } " first" }))
                @if let Some(last) = &state.last_move { (fact("Last move", &last_move(last, times))) }
            } }
            p {
                "Remove the cause first. All messages move back, perhaps also those that arrive during the move. Each is then "
                "processed again: a repeat changes nothing, and a message that fails again returns here. They can be weeks old. "
                "Neither a pause nor a stop ends a move; " (MOVE_BACK) " says what does."
            }
        };
        let act =
            format!("Move about {} back", counted(usize::try_from(state.waiting).unwrap_or(usize::MAX), "message"));
        Ok(Preview { shown, buttons: Some(Buttons { act, keep: "Keep them here", is_final: false }) })
    }

    /// Starts the move.
    pub(super) async fn move_letters(&self, queue: BankQueue) -> Result<String, Problem> {
        if let Some(standstill) = self.standstill_of(queue).await? {
            return Err(standstill.problem());
        }
        Ok(match self.operations.move_back(queue).await? {
            MoveBack::Begun => format!("{queue}: the move has begun. Queues shows how far it is."),
            MoveBack::UnderWay => format!("{queue}: a move is already under way. Queues shows how far it is."),
        })
    }

    /// The reason not to move the messages, if there is one: the transaction service receives those of the queue of requests.
    async fn standstill_of(&self, queue: BankQueue) -> Result<Option<Standstill>, Problem> {
        if queue == BankQueue::RequestDeadLetters { Ok(self.standstill().await?) } else { Ok(None) }
    }
}
