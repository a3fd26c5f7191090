//! The pace of a batch: so many results a second. Those that DynamoDB throttles are tried again while there is time.

use aws_lambda_events::sqs::SqsMessage;
use futures::StreamExt as _;
use payments_boot::{Deadline, Retries, Stop};
use payments_model::OutageKind;

use crate::function::Settle;
use crate::message_end::MessageEnd;

/// The most messages handled at once.
const CONCURRENCY: usize = 16;

/// The id of a message, its end, and whether another payment has the same transaction id.
type Handled = (String, MessageEnd, bool);

impl Settle {
    /// Handles messages, each until it has an end that a retry does not change, or until the deadline. A message that is
    /// returned to the queue has used one of its receives, so it is returned as late as possible.
    pub(crate) async fn handle_all(&self, messages: Vec<SqsMessage>, deadline: &Deadline) -> Vec<Handled> {
        let (mut left, mut ends, mut retries) = (messages, Vec::new(), Retries::default());
        loop {
            let (started, before) = (self.clock.instant(), left.len());
            let (again, outage) = self.handle_once(left, deadline, &mut ends).await;
            let done = u32::try_from(before - again.len()).unwrap_or(u32::MAX);
            deadline.keep_rate(done, started, self.config.per_second).await;
            let Some(kind) = outage else { return ends };
            if done > 0 {
                retries = Retries::default();
            }
            let (messages, outages): (Vec<_>, Vec<_>) = again.into_iter().unzip();
            match retries.wait_for(kind, deadline).await {
                Ok(()) => {}
                // The waits begin anew: there is time left, and a receive is worth more.
                Err(Stop::GivenUp) => retries = Retries::default(),
                Err(Stop::OutOfTime | Stop::Broken) => {
                    ends.extend(outages);
                    return ends;
                }
            }
            left = messages;
        }
    }

    /// Handles each message once. Returns those to be tried again with their ends so far, and why.
    async fn handle_once(
        &self,
        messages: Vec<SqsMessage>,
        deadline: &Deadline,
        ends: &mut Vec<Handled>,
    ) -> (Vec<(SqsMessage, Handled)>, Option<OutageKind>) {
        let handle = |message: SqsMessage| async move {
            let handled = self.handle_message(message.clone(), deadline).await;
            (message, handled)
        };
        // Collecting them all leaves no write in flight when the function answers.
        let round: Vec<_> = futures::stream::iter(messages).map(handle).buffer_unordered(CONCURRENCY).collect().await;
        let (mut again, mut outage) = (Vec::new(), None);
        for (message, handled) in round {
            match handled.1 {
                MessageEnd::Outage(kind) if kind != OutageKind::Broken => {
                    outage = Some(kind);
                    again.push((message, handled));
                }
                _ => ends.push(handled),
            }
        }
        (again, outage)
    }
}
