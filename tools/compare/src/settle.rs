//! Settlements as the queue delivers them, and the update and the two queries of each alone.

use anyhow::{Result, ensure};
use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use futures::{StreamExt as _, TryStreamExt as _};
use payments_model::{Actor, Event, Head, Settlement, State, TrailEntry, TransactionId};
use serde_json::json;

use crate::Work;
use crate::bank::Bank;
use crate::calls::send_groups;

/// How many messages the template hands to `settle` at once.
const BATCH: usize = 10;

/// How many batches are under way at once.
const BATCHES_AT_ONCE: usize = 3;

/// Who settles, as the function names itself.
const SETTLE: &str = "settle";

pub(crate) async fn by_handler(bank: &Bank, size: u64) -> Result<Work<'_>> {
    let messages: Vec<SqsMessage> = pending(bank, size).await?.iter().map(message).collect();
    let mut events = Vec::new();
    for some in messages.chunks(BATCH) {
        let mut event = SqsEvent::default();
        event.records = some.to_vec();
        events.push(event);
    }
    let settled = futures::stream::iter(events).map(|event| async {
        let again = bank.functions.settle.handle(event).await.batch_item_failures;
        ensure!(again.is_empty(), "{} messages come again", again.len());
        Ok(())
    });
    Ok(Box::pin(settled.buffer_unordered(BATCHES_AT_ONCE).try_collect()))
}

pub(crate) async fn barely(bank: &Bank, size: u64) -> Result<Work<'_>> {
    let mut payments = Vec::new();
    for head in pending(bank, size).await? {
        let (key, id) = (head.key(), transaction_id(&head)?);
        let event = Event::Settle(Settlement::Processed(id.clone()));
        let step = head.transition(&event, bank.now, Actor::named(SETTLE))?;
        let update = bank.recorder.call(async |store| store.transition(&key, head.due_date, &step).await).await?;
        let look = bank.recorder.call(async |store| store.payments_of_transaction(&id).await).await?;
        let look_back = look.clone().of_table(&bank.environment.tables.history);
        payments.push([update, look, look_back]);
    }
    Ok(Box::pin(send_groups(&bank.client, payments, BATCH * BATCHES_AT_ONCE)))
}

/// Payments that were handed to the transaction service.
async fn pending(bank: &Bank, size: u64) -> Result<Vec<Head>> {
    let mut heads = bank.due(size)?;
    for head in &mut heads {
        let (state, at) = (State::Pending, bank.now);
        head.moved = vec![TrailEntry { status: state.status(), at, by: Actor::named("daily-due-sweeper") }];
        (head.state, head.version, head.dispatch_attempt) = (state, 2, Some(1));
    }
    bank.put(&heads).await?;
    Ok(heads)
}

/// The report that a payment was processed, with where it is.
fn message(head: &Head) -> SqsMessage {
    let payment_id = head.payment_id.to_string();
    let report = json!({
        "paymentId": payment_id,
        "outcome": "PROCESSED",
        "transactionId": format!("TX-{payment_id}"),
        "accountId": head.account.as_str(),
        "dueAt": head.due_at.to_string(),
    });
    let mut message = SqsMessage::default();
    message.message_id = Some(payment_id);
    message.body = Some(report.to_string());
    message
}

fn transaction_id(head: &Head) -> Result<TransactionId> {
    Ok(format!("TX-{}", head.payment_id).parse()?)
}
