//! The function: sends the requests that a batch of stream records asks for.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::dynamodb::{Event, EventRecord};
use aws_lambda_events::streams::DynamoDbEventResponse;
use chrono::TimeDelta;
use futures::future::join_all;
use lambda_runtime::Error;
use metrique_writer::Entry;
use payments_boot::{Clock, Metrics, SWITCHED_CALL_TIMEOUT};
use payments_model::{Details, DetailsKey, Head, HeadKey, State, causes};
use payments_queue::{PaymentRequest, SENT_AT_ONCE, TransactionQueue};
use payments_store::key::{account_partition, head_sort};
use payments_store::{MAX_BATCH_GET, Moved, Store, StoreError, StoredHead, TableNames};
use payments_work::{SWITCH_WORKS_WITHIN, SwitchReader};

use crate::attempt::DispatchAttempt;
use crate::response::{Retried, Why, response};

/// Whether a pending head followed its settlement.
type Followed = Result<bool, StoreError>;

/// The time from which a claim is late, counted from the moment at which the payment could be claimed.
/// The sweep takes half an hour for a million payments.
const LATE: TimeDelta = TimeDelta::hours(1);

/// The longest time between a read of the switch and a send.
const SWITCH_AGE: Duration = Duration::from_secs(1);
const _: () = assert!(SWITCH_AGE.as_secs() + SWITCHED_CALL_TIMEOUT.as_secs() <= SWITCH_WORKS_WITHIN.as_secs());

/// The function.
#[derive(Debug, Clone)]
pub struct Dispatch {
    pub(crate) store: Store,
    pub(crate) queue: Arc<dyn TransactionQueue>,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
    switch_reader: SwitchReader,
}

/// The numbers of a batch, emitted as metrics.
#[derive(Debug, Default, Entry)]
#[entry(rename_all = "PascalCase")]
struct Tally {
    sent: u64,
    /// Payments that are no longer pending at the record's dispatch attempt.
    moved_on: u64,
    /// Pending payments whose settlement was in the long-term table, and that are settled now.
    completed: u64,
    send_failed: u64,
    /// Pending payments that were not sent because the switch is on, or unreadable.
    #[entry(name = "SendsStopped")]
    stopped: u64,
    /// Records whose payment cannot be read or is damaged.
    poison_records: u64,
    /// Payments whose head and details disagree. Their records also count as poison.
    requests_disagreeing: u64,
    /// The records to be delivered again.
    #[entry(ignore)]
    retried: Retried,
}

impl Tally {
    fn not_sent(&mut self, attempt: &DispatchAttempt) {
        self.send_failed += 1;
        self.retried.insert(attempt.sequence_number.clone(), Why::NotSent);
    }

    /// Notes a payment that no retry can send. The mapping isolates the payment's record.
    fn poison(&mut self, attempt: &DispatchAttempt) {
        self.poison_records += 1;
        self.retried.insert(attempt.sequence_number.clone(), Why::Poison);
    }
}

impl Dispatch {
    /// Creates the function.
    pub fn new(store: Store, queue: Arc<dyn TransactionQueue>, clock: Clock, metrics: Metrics) -> Self {
        let switch_reader = SwitchReader::new(&store, &clock, SWITCH_AGE);
        Self { store, queue, clock, metrics, switch_reader }
    }

    /// Sends the requests of one batch of stream records. The answer names the first record to be retried;
    /// Lambda delivers the batch again from there.
    ///
    /// # Errors
    /// An error if the first record is poison and others follow, so that Lambda halves the batch.
    /// All other failures are in the answer.
    pub async fn handle(&self, event: Event) -> Result<DynamoDbEventResponse, Error> {
        let order: Vec<String> =
            event.records.iter().map(|record| record.change.sequence_number.clone().unwrap_or_default()).collect();
        let mut tally = Tally::default();
        let attempts = attempts(event.records, &mut tally);
        for some in attempts.chunks(MAX_BATCH_GET) {
            // The future is boxed, because it holds the state of every call that it may wait for.
            if let Err(error) = Box::pin(self.relay(some, &mut tally)).await {
                tracing::warn!(causes = ?causes(&error), "DynamoDB failed before requests were sent; Lambda retries them");
                some.iter().for_each(|attempt| tally.not_sent(attempt));
            }
        }
        self.metrics.emit(self.clock.instant(), &tally);
        Ok(response(&order, &tally.retried)?)
    }

    async fn relay(&self, attempts: &[DispatchAttempt], tally: &mut Tally) -> Result<(), StoreError> {
        let keys: Vec<HeadKey> = attempts.iter().map(|attempt| attempt.key.clone()).collect();
        let heads: HashMap<HeadKey, Result<Head, StoreError>> =
            self.store.hot_heads(&keys).await?.into_iter().collect();
        let mut pending = Vec::new();
        for attempt in attempts {
            match heads.get(&attempt.key) {
                Some(Ok(head)) if head.state == State::Pending && head.dispatch_attempt == Some(attempt.number) => {
                    pending.push((attempt, head));
                }
                Some(Err(error)) => {
                    tracing::error!(%error, "a pending payment cannot be read and is not dispatched");
                    tally.poison(attempt);
                }
                _ => tally.moved_on += 1,
            }
        }
        let pending = self.not_settled(pending, tally).await?;
        let keys: Vec<DetailsKey> = pending.iter().map(|(_, head)| head.details_key()).collect();
        let details = self.store.details_of(&keys).await?;
        let (mut sending, mut requests) = (Vec::new(), Vec::new());
        for (attempt, head) in pending {
            match details.get(&head.details_key()) {
                Some(Ok(details)) if self.agree(head, details) => {
                    requests.push(PaymentRequest::new(details, attempt.number));
                    sending.push(attempt);
                }
                Some(Ok(_)) => {
                    tally.requests_disagreeing += 1;
                    tally.poison(attempt);
                }
                Some(Err(error)) => {
                    tracing::error!(%error, "a pending payment's details cannot be read and it is not dispatched");
                    tally.poison(attempt);
                }
                // Details are written before the head names them. But this read can miss new details for
                // a moment, and a restore can lose details.
                None => {
                    tracing::warn!(
                        payment_id = %head.payment_id,
                        "a pending payment's details are not found and it is not dispatched; Lambda retries it"
                    );
                    tally.not_sent(attempt);
                }
            }
        }
        self.send_all(&sending, &requests, tally).await;
        Ok(())
    }

    /// Returns the pending payments that have no settlement in the long-term table. For a payment with a settlement,
    /// settles the head in the hot table: if the settlement result never comes again, no other function does so.
    async fn not_settled<'a>(
        &self,
        pending: Vec<(&'a DispatchAttempt, &'a Head)>,
        tally: &mut Tally,
    ) -> Result<Vec<(&'a DispatchAttempt, &'a Head)>, StoreError> {
        let doubtful = pending.iter().filter(|(attempt, head)| attempt.number > 1 || is_late(head));
        let doubtful: Vec<HeadKey> = doubtful.map(|(attempt, _)| attempt.key.clone()).collect();
        let settled = self.store.settled_heads(&doubtful).await?.into_iter();
        let followed = settled.map(async |(key, settled)| (key, self.follow(settled).await));
        let mut followed: HashMap<HeadKey, Followed> = join_all(followed).await.into_iter().collect();
        let mut left = Vec::with_capacity(pending.len());
        for (attempt, head) in pending {
            match followed.remove(&attempt.key) {
                None => left.push((attempt, head)),
                Some(Ok(true)) => tally.completed += 1,
                Some(Ok(false)) => tally.moved_on += 1,
                Some(Err(error @ StoreError::Unreadable { .. })) => {
                    tracing::error!(%error, "a pending payment is in the long-term table too, and is not dispatched");
                    tally.poison(attempt);
                }
                Some(Err(error)) => {
                    tracing::warn!(causes = ?causes(&error), "a settlement was not completed; Lambda retries it");
                    tally.not_sent(attempt);
                }
            }
        }
        Ok(left)
    }

    /// Gives a head in the hot table the settlement of the long-term table's head. Returns whether the
    /// hot table's head was still pending.
    async fn follow(&self, settled: Result<StoredHead, StoreError>) -> Followed {
        Ok(matches!(self.store.follow_settlement(&settled?).await?, Moved::Done(_)))
    }

    /// Whether a head and its details agree. A request is made of the details, but all other readers see the head.
    fn agree(&self, head: &Head, details: &Details) -> bool {
        let differences = head.differences(details);
        if differences.is_empty() {
            return true;
        }
        let (TableNames { payments, history, .. }, key) = (self.store.tables(), head.key());
        tracing::error!(
            payment_id = %head.payment_id,
            table = payments,
            key = format!("{} / {}", account_partition(&key.account), head_sort(key.slot)),
            details_table = history,
            ?differences,
            "a pending payment's head disagrees with its details and it is not dispatched"
        );
        false
    }

    /// Sends the requests in calls of at most 3 s, each after a look at the switch.
    async fn send_all(&self, sending: &[&DispatchAttempt], requests: &[PaymentRequest], tally: &mut Tally) {
        for (sending, requests) in sending.chunks(SENT_AT_ONCE).zip(requests.chunks(SENT_AT_ONCE)) {
            let is_stopped = match self.switch_reader.switch().await {
                Ok(switch) => switch.stopped,
                Err(error @ StoreError::Unreadable { .. }) => {
                    tracing::error!(%error, "the switch cannot be read, so nothing is sent");
                    true
                }
                Err(error) => {
                    tracing::warn!(causes = ?causes(&error), "the switch was not read, so nothing is sent; Lambda retries it");
                    sending.iter().for_each(|attempt| tally.not_sent(attempt));
                    continue;
                }
            };
            if is_stopped {
                tally.stopped += u64::try_from(sending.len()).unwrap_or(u64::MAX);
            } else {
                self.send(sending, requests, tally).await;
            }
        }
    }

    async fn send(&self, sending: &[&DispatchAttempt], requests: &[PaymentRequest], tally: &mut Tally) {
        for (attempt, sent) in sending.iter().zip(self.queue.send(requests, self.clock.instant()).await) {
            match sent {
                Ok(()) => tally.sent += 1,
                Err(error) => {
                    let payment_id = attempt.key.slot.payment_id;
                    tracing::warn!(%payment_id, causes = ?causes(&error), "a request was not sent; Lambda retries it");
                    tally.not_sent(attempt);
                }
            }
        }
    }
}

/// Whether a pending payment was claimed late.
fn is_late(head: &Head) -> bool {
    head.updated_at() > head.claimable_from().saturating_add(LATE)
}

/// Reads the dispatch attempts of a batch. Records that cannot be read are retried until the mapping has
/// isolated them and sends them to its failure destination.
fn attempts(records: Vec<EventRecord>, tally: &mut Tally) -> Vec<DispatchAttempt> {
    let mut seen = HashSet::new();
    let mut attempts = Vec::with_capacity(records.len());
    for record in records {
        let sequence_number = record.change.sequence_number.clone().unwrap_or_default();
        match DispatchAttempt::from_record(record) {
            // Duplicates are dropped: BatchGetItem rejects a repeated key.
            Ok(attempt) if seen.insert((attempt.key.clone(), attempt.number)) => attempts.push(attempt),
            Ok(_) => {}
            Err(error) => {
                tracing::error!(%error, sequence_number, "a stream record cannot be read and is not dispatched");
                tally.poison_records += 1;
                tally.retried.insert(sequence_number, Why::Poison);
            }
        }
    }
    attempts
}
