//! Moving dead letters back to the queue from which they came.

use maud::html;
use payments_http::{Form, Problem, ProblemKind, invalid_field};

use crate::actions::preview::{Buttons, Preview, counted};
use crate::actions::standstill::Standstill;
use crate::function::Console;
use crate::guides::MOVE_BACK;
use crate::html::{fact, grouped, link};
use crate::operations::{BankQueue, MoveBack};
use crate::views::queues::{last_move, title as queue_title};

/// The longest name of a queue, in bytes.
const MAX_QUEUE_BYTES: usize = 40;

/// The longest number of messages, in bytes.
const MAX_NUMBER_BYTES: usize = 20;

/// Dead letters to move back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Letters {
    queue: BankQueue,
    /// About how many there were in the preview.
    pub(super) shown: Option<u64>,
}

impl Letters {
    /// Reads the queue of dead letters, and how many the preview showed.
    pub(super) fn read(form: &mut Form) -> Result<Self, Problem> {
        const FIELD: &str = "queue";
        const SHOWN: &str = "messages";
        let queue: BankQueue = form.get(FIELD, MAX_QUEUE_BYTES)?;
        let shown = form.take(SHOWN, MAX_NUMBER_BYTES)?;
        let shown = (!shown.is_empty()).then(|| shown.parse()).transpose();
        let shown = shown.map_err(|_| invalid_field(SHOWN, &"it has to be the number of a preview"))?;
        match queue.source() {
            Some(_) => Ok(Self { queue, shown }),
            None => Err(invalid_field(
                FIELD,
                &"its messages cannot be moved back; choose request-dead-letters or result-dead-letters",
            )),
        }
    }

    pub(super) fn fields(&self) -> Vec<(&'static str, String)> {
        let shown = self.shown.map(|shown| ("messages", shown.to_string()));
        [("queue", self.queue.to_string())].into_iter().chain(shown).collect()
    }

    /// The heading of a move's preview and outcome.
    pub(super) fn title(&self) -> String {
        let from = queue_title(self.queue).to_ascii_lowercase();
        format!("Move the {from} back to the queue {}", self.queue.source().map_or("", queue_title))
    }
}

impl Console {
    /// Shows how many messages there are: one or two calls. Also returns the letters with their number.
    pub(super) async fn preview_letters(&self, letters: &Letters) -> Result<(Preview, Letters), Problem> {
        let queue = letters.queue;
        if let Some(standstill) = self.standstill_of(queue).await? {
            return Ok((standstill.preview(), *letters));
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
        let seen = Letters { queue, shown: Some(state.waiting) };
        Ok((Preview { shown, buttons: Some(Buttons { act, keep: "Keep them here", is_final: false }) }, seen))
    }

    /// Starts the move, unless there are more messages than the preview showed.
    pub(super) async fn move_letters(&self, letters: &Letters) -> Result<String, Problem> {
        let queue = letters.queue;
        if let Some(standstill) = self.standstill_of(queue).await? {
            return Err(standstill.problem());
        }
        let waiting = self.operations.queue(queue).await?.waiting;
        if letters.shown.is_none_or(|shown| shown < waiting) {
            let detail =
                format!("There are about {waiting} messages, and the preview showed fewer. Preview the move again.");
            return Err(Problem::new(ProblemKind::InvalidShape, detail));
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
