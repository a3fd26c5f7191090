//! Settlement results as the queue delivers them, and only the update and the two queries of each.

use anyhow::{Result, ensure};
use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use futures::{StreamExt as _, TryStreamExt as _};
use payments_model::transition::CLAIMED;
use payments_model::{Actor, Event, Head, Settlement, TrailEntry, TransactionId};
use serde_json::json;

use crate::calls::{Work, send_groups};
use crate::fixture::Fixture;

/// The batch size of `settle`'s queue in the template.
const BATCH: usize = 10;

/// The batches in flight.
const BATCHES_AT_ONCE: usize = 3;

/// The actor, as the function names itself.
const SETTLE: &str = "settle";

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
    let mut payments = Vec::new();
    for head in pending(fixture, size).await? {
        let (key, id) = (head.key(), transaction_id(&head)?);
        let event = Event::Settle(Settlement::Processed(id.clone()));
        let step = head.transition(&event, fixture.now, Actor::named(SETTLE))?;
        let update = fixture.collector.call(async |store| store.transition(&key, head.due_date, &step).await).await?;
        let look_up = fixture.collector.call(async |store| store.payments_of_transaction(&id).await).await?;
        let look_up_in_history = look_up.clone().of_table(&fixture.tables.history);
        payments.push([update, look_up, look_up_in_history]);
    }
    Ok(Box::pin(send_groups(&fixture.client, payments, BATCH * BATCHES_AT_ONCE)))
}

/// Creates pending payments.
async fn pending(fixture: &Fixture, size: u64) -> Result<Vec<Head>> {
    let mut heads = fixture.due(size)?;
    for head in &mut heads {
        (head.state, head.version) = CLAIMED;
        let by = Actor::named("daily-due-sweeper");
        head.moved = vec![TrailEntry { status: head.state.status(), at: fixture.now, by }];
        head.dispatch_attempt = Some(1);
    }
    fixture.put(&heads).await?;
    Ok(heads)
}

/// Returns the settlement result of a processed payment.
fn message(head: &Head) -> SqsMessage {
    let payment_id = head.payment_id.to_string();
    let result = json!({
        "paymentId": payment_id,
        "outcome": "PROCESSED",
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
