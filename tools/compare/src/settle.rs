//! Settlement results as the queue delivers them, and only the calls of each.
//!
//! The pending head is read, its settled head put into the long-term table, the head in the hot table updated, and the
//! transaction id looked up.

use anyhow::{Result, ensure};
use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use futures::{StreamExt as _, TryStreamExt as _};
use payments_model::{Actor, Event, Head, Settlement, TrailEntry, TransactionId, Transition};
use payments_store::StoredHead;
use serde_json::json;

use crate::calls::{Work, send_groups};
use crate::fixture::Fixture;

/// The batch size of `settle`'s queue in the template.
const BATCH: usize = 10;

/// The batches in flight.
const BATCHES_AT_ONCE: usize = 3;

pub(crate) async fn by_handler(fixture: &Fixture, size: u64) -> Result<Work<'_>> {
    let messages: Vec<SqsMessage> = pending(fixture, size).await?.iter().map(message).collect();
    let event = |batch: &[SqsMessage]| {
        let mut event = SqsEvent::default();
        event.records = batch.to_vec();
        event
    };
    let events: Vec<SqsEvent> = messages.chunks(BATCH).map(event).collect();
    let settled = futures::stream::iter(events).map(|event| async {
        let failed = fixture.functions.settle_batch(event).await.batch_item_failures;
        ensure!(failed.is_empty(), "{} messages failed", failed.len());
        Ok(())
    });
    Ok(Box::pin(settled.buffer_unordered(BATCHES_AT_ONCE).try_collect()))
}

pub(crate) async fn bare_calls(fixture: &Fixture, size: u64) -> Result<Work<'_>> {
    let (mut payments, collector) = (Vec::new(), &fixture.collector);
    for head in pending(fixture, size).await? {
        let (key, id) = (head.key(), transaction_id(&head)?);
        let event = Event::Settle(Settlement::Processed(id.clone()));
        let step = head.transition(&event, fixture.now, Actor::transaction_service())?;
        let settled = StoredHead::new(after(head.clone(), &step))?;
        let pending = StoredHead::new(head)?;
        let read = collector.call(async |store| store.recent_head(&key).await).await?;
        let put = collector.call(async |store| store.decide_settlement(&pending, &step).await).await?;
        let update = collector.call(async |store| store.follow_settlement(&settled).await).await?;
        let look_up = collector.call(async |store| store.payments_of_transaction(&id).await).await?;
        payments.push([read, put, update, look_up]);
    }
    Ok(Box::pin(send_groups(&fixture.client, payments, BATCH * BATCHES_AT_ONCE)))
}

/// Creates pending payments.
async fn pending(fixture: &Fixture, size: u64) -> Result<Vec<Head>> {
    let mut heads = fixture.due(size)?;
    for head in &mut heads {
        let step = head.transition(&Event::Sweep, fixture.now, Actor::sweep())?;
        *head = Head { dispatch_attempt: Some(1), ..after(head.clone(), &step) };
    }
    fixture.put(&heads).await?;
    Ok(heads)
}

/// Returns the head after a transition.
fn after(mut head: Head, step: &Transition) -> Head {
    let (state, version) = (step.to().clone(), step.version() + 1);
    head.moved.push(TrailEntry { status: state.status(), at: step.at(), by: step.by().clone() });
    Head { state, version, ..head }
}

/// Returns the settlement result of a processed payment.
fn message(head: &Head) -> SqsMessage {
    let payment_id = head.payment_id.to_string();
    let result = json!({
        "v": 1, "kind": "settlement", "paymentId": payment_id,
        "amountMinor": head.money.amount.get(), "currency": head.money.currency.code(), "payeeAccountId": head.payee.as_str(),
        "status": "PROCESSED",
        "transactionId": format!("TX-{payment_id}"),
        "accountId": head.account.as_str(),
        "dueAt": head.due_at.to_string(),
    });
    let mut message = SqsMessage::default();
    message.message_id = Some(payment_id);
    message.body = Some(result.to_string());
    message
}

fn transaction_id(head: &Head) -> Result<TransactionId> {
    Ok(format!("TX-{}", head.payment_id).parse()?)
}
