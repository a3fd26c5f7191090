//! Handles a batch at a limited number of results a second, and retries throttled results while there is time.

use std::collections::VecDeque;

use aws_lambda_events::sqs::SqsMessage;
use futures::StreamExt as _;
use payments_boot::Deadline;
use payments_model::{Outage as _, OutageKind};
use payments_store::StoreError;
use payments_work::{Halt, Round, Work, drive};

use crate::function::Settle;
use crate::message::Message;
use crate::message_end::{Handled, MessageEnd};

/// The most messages handled at once.
const CONCURRENCY: usize = 16;

/// A batch that is being handled.
struct Batch<'b> {
    settle: &'b Settle,
    deadline: &'b Deadline,
    /// The messages that have no end yet, each with the outage of its last try, if it was tried.
    in_hand: VecDeque<(SqsMessage, Option<OutageKind>)>,
    handled: Vec<Handled>,
}

impl Settle {
    /// Handles each message until its result is final, or until the deadline. A message becomes a dead letter after thirty
    /// receives, and each return to the queue leads to another receive. So retries are made here as long as possible.
    pub(crate) async fn handle_batch(&self, messages: Vec<SqsMessage>, deadline: &Deadline) -> Vec<Handled> {
        let in_hand = messages.into_iter().map(|message| (message, None)).collect();
        Batch { settle: self, deadline, in_hand, handled: Vec::new() }.handle().await
    }
}

impl Batch<'_> {
    async fn handle(mut self) -> Vec<Handled> {
        let Self { settle, deadline, .. } = self;
        // `GivenUp` ends a series of retries before the deadline. Another series begins at once: to
        // return the messages now would cost each of them a receive.
        while let Err(Halt::GivenUp(_)) = drive(&mut self, &settle.clock, deadline).await {}
        for (message, outage) in self.in_hand {
            let end = outage.map_or(MessageEnd::OutOfTime, MessageEnd::Outage);
            self.handled.push(Handled::new(message.message_id.unwrap_or_default(), end));
        }
        self.handled
    }
}

impl Work for Batch<'_> {
    type Error = StoreError;

    fn is_done(&self) -> bool {
        self.in_hand.is_empty()
    }

    /// Handles each message once.
    async fn round(&mut self) -> Round<StoreError> {
        let settle = self.settle;
        let deadline = self.deadline;
        let some = std::mem::take(&mut self.in_hand);
        let before = some.len();
        let handle = |(message, _)| async move {
            let handled = Message::new(settle, &message, deadline).handle().await;
            (message, handled)
        };
        // The whole stream is collected, so that no write is in flight when the function answers.
        let round: Vec<_> = futures::stream::iter(some).map(handle).buffer_unordered(CONCURRENCY).collect().await;
        let mut failure = None;
        for (message, handled) in round {
            match handled {
                Ok(handled) => self.handled.push(handled),
                Err(error) => {
                    self.in_hand.push_back((message, Some(error.kind())));
                    failure = Some(error);
                }
            }
        }
        let done = u32::try_from(before - self.in_hand.len()).unwrap_or(u32::MAX);
        Round { done, per_second: settle.config.per_second, failure }
    }
}
