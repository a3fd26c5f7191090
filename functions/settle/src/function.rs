//! The function: handles a batch of settlement results, each on its own.

use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent};
use lambda_runtime::LambdaEvent;
use payments_boot::{Clock, Deadline, Metrics};
use payments_store::Store;

use crate::config::Config;
use crate::message_end::Tally;

/// The function.
#[derive(Debug, Clone)]
pub struct Settle {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    metrics: Metrics,
}

impl Settle {
    /// Creates the function.
    pub fn new(config: Config, store: Store, clock: Clock, metrics: Metrics) -> Self {
        Self { config, store, clock, metrics }
    }

    /// Handles one batch of settlement results, each on its own, until shortly before Lambda's deadline. The answer
    /// names the messages to be retried.
    pub async fn handle(&self, event: LambdaEvent<SqsEvent>) -> SqsBatchResponse {
        let deadline = Deadline::before(event.context.deadline, &self.clock);
        let handled = self.handle_batch(event.payload.records, &deadline).await;
        let mut tally = Tally::default();
        let mut response = SqsBatchResponse::default();
        for message in handled {
            tally.count(&message);
            if message.end.is_retried() {
                let mut failure = BatchItemFailure::default();
                failure.item_identifier = message.id;
                response.batch_item_failures.push(failure);
            }
        }
        self.metrics.emit(self.clock.instant(), &tally);
        response
    }
}
