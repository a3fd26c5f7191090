//! `dispatch` alone over the machine: which requests the changes of the hot table send.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use dispatch::Dispatch;
use payments_delivery::{DeliveryOutcome, StreamMapping};
use payments_machine::given::{Given, resume, stop};
use payments_machine::invocation::{read, written};
use payments_machine::triggers::stream_settings;
use payments_model::Details;
use payments_queue::{PaymentRequest, Queue, QueueError, TransactionQueue};
use serde_json::{Value, json};

/// `dispatch` on a machine, behind the stream of the hot table.
struct Alone {
    given: Given,
    dispatch: Dispatch,
    mapping: StreamMapping,
    queue: Arc<Requests>,
}

/// The queue of requests, which may be away.
#[derive(Debug)]
struct Requests {
    queue: Queue,
    is_away: AtomicBool,
}

#[async_trait]
impl TransactionQueue for Requests {
    async fn send(&self, requests: &[PaymentRequest], now: DateTime<Utc>) -> Vec<Result<(), QueueError>> {
        if self.is_away.load(Ordering::Relaxed) {
            return requests.iter().map(|_| Err(QueueError::Unavailable(Arc::new(std::fmt::Error)))).collect();
        }
        TransactionQueue::send(&self.queue, requests, now).await
    }
}

impl Alone {
    async fn start() -> Result<Self> {
        let given = Given::at("2026-11-20T09:00:00Z", |_| {}).await?;
        let queue = Arc::new(Requests { queue: given.stack.queues.requests.clone(), is_away: AtomicBool::new(false) });
        let (clock, metrics) = (given.stack.clock.clone(), given.stack.metrics.clone());
        let dispatch = Dispatch::new(given.store.clone(), Arc::clone(&queue) as _, clock, metrics);
        let settings = stream_settings("dispatch", Some(&given.stack.queues.dispatch_failures))?;
        let mapping = StreamMapping::new(settings, given.stack.stream().await?)?;
        Ok(Self { given, dispatch, mapping, queue })
    }

    /// Delivers a batch of the stream. Returns the metrics that it raised, and how the invocation ended, if there was one.
    async fn deliver(&mut self) -> Result<(String, Option<DeliveryOutcome>)> {
        let dispatch = &self.dispatch;
        let handle =
            |event| async move { written(&dispatch.handle(read(event)?).await.map_err(|error| error.to_string())?) };
        let mut deliveries = self.mapping.step(self.given.stack.clock.instant(), handle).await?;
        Ok((self.given.raised()?.join(", "), deliveries.pop().map(|delivery| delivery.outcome)))
    }

    /// Takes the requests that were sent.
    fn sent(&self) -> Result<Vec<Value>> {
        let received = self.queue.queue.receive(10, self.given.stack.clock.instant());
        received.into_iter().map(|message| Ok(serde_json::from_str(&message.body)?)).collect()
    }
}

fn request(details: &Details, attempt: u32) -> Value {
    json!({
        "v": 1, "kind": "payment", "paymentId": details.payment_id.to_string(), "dispatchAttempt": attempt,
        "accountId": "tenant", "payeeAccountId": "landlord", "amountMinor": 500, "currency": "GBP",
        "dueAt": "2026-11-20T00:00:00Z",
    })
}

#[tokio::test]
async fn a_claim_sends_one_request_and_nothing_else_invokes_the_function() -> Result<()> {
    let mut alone = Alone::start().await?;
    alone.given.scheduled("scheduled", "2026-11-20").await?;
    assert_eq!(alone.deliver().await?, (String::new(), None));
    let details = alone.given.pending("pending").await?;
    assert_eq!(alone.deliver().await?, ("Sent 1".to_owned(), Some(DeliveryOutcome::Succeeded)));
    assert_eq!(alone.sent()?, [request(&details, 1)]);
    assert_eq!(alone.deliver().await?, (String::new(), None));
    Ok(())
}

#[tokio::test]
async fn of_two_attempts_in_a_batch_the_last_is_sent() -> Result<()> {
    let mut alone = Alone::start().await?;
    let details = alone.given.pending("pending").await?;
    assert!(alone.given.store.redrive(&details.key(), 1, 2, alone.given.stack.clock.now()).await?);
    assert_eq!(alone.deliver().await?, ("MovedOn 1, Sent 1".to_owned(), Some(DeliveryOutcome::Succeeded)));
    assert_eq!(alone.sent()?, [request(&details, 2)]);
    Ok(())
}

#[tokio::test]
async fn a_request_that_was_not_sent_is_sent_by_a_retry() -> Result<()> {
    let mut alone = Alone::start().await?;
    let details = alone.given.pending("pending").await?;
    alone.queue.is_away.store(true, Ordering::Relaxed);
    let (metrics, outcome) = alone.deliver().await?;
    assert_eq!(metrics, "SendFailed 1");
    assert!(matches!(outcome, Some(DeliveryOutcome::Retrying { remaining: 1, .. })), "{outcome:?}");
    alone.queue.is_away.store(false, Ordering::Relaxed);
    assert_eq!(alone.deliver().await?, ("Sent 1".to_owned(), Some(DeliveryOutcome::Succeeded)));
    assert_eq!(alone.sent()?, [request(&details, 1)]);
    Ok(())
}

#[tokio::test]
async fn while_all_is_stopped_a_record_is_skipped_and_a_redrive_after_the_resume_sends_it() -> Result<()> {
    let mut alone = Alone::start().await?;
    let details = alone.given.pending("pending").await?;
    alone.given.switched(stop).await?;
    assert_eq!(alone.deliver().await?, ("SendsStopped 1".to_owned(), Some(DeliveryOutcome::Succeeded)));
    alone.given.switched(resume).await?;
    assert_eq!(alone.deliver().await?, (String::new(), None), "the record is done");
    alone.given.pass(TimeDelta::hours(1));
    assert!(alone.given.store.redrive(&details.key(), 1, 2, alone.given.stack.clock.now()).await?);
    assert_eq!(alone.deliver().await?, ("Sent 1".to_owned(), Some(DeliveryOutcome::Succeeded)));
    assert_eq!(alone.sent()?, [request(&details, 2)]);
    Ok(())
}
