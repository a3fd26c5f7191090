//! Moving dead letters back to the queue from which they came.

use maud::html;
use payments_http::{Form, Problem, ProblemKind, invalid_field};

use crate::actions::preview::Preview;
use crate::config::Paused;
use crate::function::Console;
use crate::html::{fact, grouped};
use crate::operations::{BankQueue, MoveBack};
use crate::views::queues::{last_move, title};

/// The longest name of a queue, in bytes.
const MAX_QUEUE_BYTES: usize = 40;

/// Reads the queue of dead letters, and where they came from.
pub(super) fn read(form: &mut Form) -> Result<BankQueue, Problem> {
    const FIELD: &str = "queue";
    let queue: BankQueue = form.get(FIELD, MAX_QUEUE_BYTES)?;
    match queue.source() {
        Some(_) => Ok(queue),
        None => Err(invalid_field(FIELD, &"its messages came from no queue")),
    }
}

/// Why nothing is moved during a pause: the transaction service receives what is in the queue of requests.
const PAUSED: &str =
    "Sending is paused, and these messages would be sent. End the pause first, with the parameter Paused.";

impl Console {
    /// Shows how many messages there are: one or two calls.
    pub(super) async fn preview_letters(&self, queue: BankQueue) -> Result<Preview, Problem> {
        if self.is_forbidden(queue) {
            return Ok(Preview { shown: html! { p class="warn" { (PAUSED) } }, button: None });
        }
        let state = self.operations.queue(queue).await?;
        let shown = html! {
            dl {
                (fact("Messages", &html! { "about " (grouped(state.waiting.into())) }))
                @if let Some(source) = queue.source() { (fact("Go back to", &html! { (title(source)) })) }
                @if let Some(last) = &state.last_move { (fact("Last move", &last_move(last))) }
            }
            p {
                "All messages go back, also those that come meanwhile. Each is then handled again: what was handled already changes "
                "nothing, and what cannot be handled comes back here. End what made them fail first."
            }
        };
        Ok(Preview { shown, button: Some("Move all back".to_owned()) })
    }

    /// Has them moved.
    pub(super) async fn move_letters(&self, queue: BankQueue) -> Result<String, Problem> {
        if self.is_forbidden(queue) {
            return Err(Problem::new(ProblemKind::InvalidShape, PAUSED));
        }
        Ok(match self.operations.move_back(queue).await? {
            MoveBack::Begun => format!("{queue}: its messages are moved back"),
            MoveBack::UnderWay => format!("{queue}: its messages are being moved back already"),
        })
    }

    fn is_forbidden(&self, queue: BankQueue) -> bool {
        queue == BankQueue::RequestDeadLetters && self.config.paused != Paused::None
    }
}
