//! `dispatch`: the outbox relay. A payment that became pending, or is handed over again, goes to
//! the transaction service's queue.
//!
//! The stream only says where to look. What is sent is what a consistent read of the head still
//! shows pending at that very hand-over, with the details as they were accepted; so a re-read of
//! the whole stream sends nothing again, and nothing is sent that was not pending.

mod config;
mod handover;

use std::collections::{HashMap, HashSet};

use aws_lambda_events::dynamodb::{Event, EventRecord};
use aws_lambda_events::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
use lambda_runtime::Error;
use metrique_writer::Entry;
use payments_boot::{Clock, Metrics};
use payments_model::{Details, Head, HeadKey, PaymentId, State, causes};
use payments_queue::{PaymentRequest, TransactionQueue};
use payments_store::{MAX_BATCH_GET, Store, StoreError};

pub use config::Config;
use handover::Handover;

/// The function.
#[derive(Debug, Clone)]
pub struct Dispatch {
    store: Store,
    queue: TransactionQueue,
    clock: Clock,
    metrics: Metrics,
}

/// What became of a batch.
#[derive(Debug, Default, Entry)]
#[entry(rename_all = "PascalCase")]
struct Tally {
    sent: u64,
    /// Payments that had moved on before their record was looked at.
    moved_on: u64,
    send_failed: u64,
    /// Records that cannot be read.
    poison_records: u64,
    /// The places of what has to come again.
    #[entry(ignore)]
    again: Vec<String>,
}

impl Tally {
    /// Counts what was not sent this time.
    fn not_sent(&mut self, handover: &Handover) {
        self.send_failed += 1;
        self.again.push(handover.sequence_number.clone());
    }
}

impl Dispatch {
    /// The function with all it needs.
    #[must_use]
    pub fn new(store: Store, queue: TransactionQueue, clock: Clock, metrics: Metrics) -> Self {
        Self { store, queue, clock, metrics }
    }

    /// Relays one batch of stream records. The answer names the first record that has to come
    /// again; Lambda then delivers from there on.
    ///
    /// # Errors
    /// Never for what a batch holds: that is in the answer.
    pub async fn handle(&self, event: Event) -> Result<DynamoDbEventResponse, Error> {
        let order: Vec<String> =
            event.records.iter().map(|record| record.change.sequence_number.clone().unwrap_or_default()).collect();
        let mut tally = Tally::default();
        let handovers = latest(event.records, &mut tally);
        for some in handovers.chunks(MAX_BATCH_GET) {
            if let Err(error) = self.relay(some, &mut tally).await {
                tracing::warn!(causes = ?causes(&error), "a part of the batch has to come again");
                some.iter().for_each(|handover| tally.not_sent(handover));
            }
        }
        let mut response = DynamoDbEventResponse::default();
        if let Some(first) = order.into_iter().find(|place| tally.again.contains(place)) {
            let mut failure = DynamoDbBatchItemFailure::default();
            failure.item_identifier = Some(first);
            response.batch_item_failures.push(failure);
        }
        self.metrics.emit(self.clock.instant(), &tally);
        Ok(response)
    }

    async fn relay(&self, handovers: &[Handover], tally: &mut Tally) -> Result<(), StoreError> {
        let keys: Vec<HeadKey> = handovers.iter().map(|handover| handover.key.clone()).collect();
        let mut heads: HashMap<HeadKey, Head> = HashMap::new();
        let mut unreadable = HashSet::new();
        for (key, head) in self.store.hot_heads(&keys).await? {
            match head {
                Ok(head) => drop(heads.insert(key, head)),
                Err(error) => {
                    tracing::error!(%error, "a payment cannot be dispatched");
                    unreadable.insert(key);
                }
            }
        }
        let still_pending = |handover: &&Handover| {
            let head = heads.get(&handover.key);
            head.is_some_and(|head| head.state == State::Pending && head.dispatch_attempt == Some(handover.attempt))
        };
        let up: Vec<&Handover> = handovers.iter().filter(still_pending).collect();
        let poison = handovers.iter().filter(|handover| unreadable.contains(&handover.key));
        tally.again.extend(poison.map(|handover| handover.sequence_number.clone()));
        tally.poison_records += u64::try_from(unreadable.len()).unwrap_or(0);
        tally.moved_on += u64::try_from(handovers.len() - up.len() - unreadable.len()).unwrap_or(0);

        let ids: Vec<PaymentId> = up.iter().map(|handover| handover.key.sort.payment_id).collect();
        let details = self.store.details_of(&ids).await?;
        self.send(&up, &details, tally).await;
        Ok(())
    }

    async fn send(&self, up: &[&Handover], details: &HashMap<PaymentId, Details>, tally: &mut Tally) {
        let (mut sending, mut requests) = (Vec::new(), Vec::new());
        for handover in up {
            match details.get(&handover.key.sort.payment_id) {
                Some(details) => {
                    sending.push(handover);
                    requests.push(PaymentRequest::of(details, handover.attempt));
                }
                // Details are written before the head, so they are there; if a read does not show
                // them, it is repeated, and never skipped.
                None => tally.not_sent(handover),
            }
        }
        for (handover, sent) in sending.into_iter().zip(self.queue.send(&requests, self.clock.instant()).await) {
            match sent {
                Ok(()) => tally.sent += 1,
                Err(error) => {
                    let payment_id = handover.key.sort.payment_id;
                    tracing::warn!(%payment_id, causes = ?causes(&error), "a request was not sent");
                    tally.not_sent(handover);
                }
            }
        }
    }
}

/// The hand-overs of a batch; what cannot be read is counted and has to come again, until the
/// mapping has isolated it and puts it aside.
fn latest(records: Vec<EventRecord>, tally: &mut Tally) -> Vec<Handover> {
    let mut seen = HashSet::new();
    let mut handovers = Vec::with_capacity(records.len());
    for record in records {
        let place = record.change.sequence_number.clone().unwrap_or_default();
        match Handover::of(record) {
            // The same hand-over twice in one batch is one: BatchGetItem refuses a key twice.
            Ok(handover) if seen.insert((handover.key.clone(), handover.attempt)) => handovers.push(handover),
            Ok(_) => {}
            Err(error) => {
                tracing::error!(%error, sequence_number = place, "a stream record cannot be read");
                tally.poison_records += 1;
                tally.again.push(place);
            }
        }
    }
    handovers
}
