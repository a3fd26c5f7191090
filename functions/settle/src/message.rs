//! One message: read and settled, and its end logged once.

use aws_lambda_events::sqs::SqsMessage;
use payments_boot::Deadline;
use payments_model::{
    Actor, Decision, Event, Head, HeadKey, Outage as _, OutageKind, PaymentId, Settlement, State, TransactionId,
    Transition, causes,
};
use payments_queue::SettlementResult;
use payments_store::{Decided, Moved, Store, StoreError};

use crate::function::Settle;
use crate::message_end::{Handled, MessageEnd};

/// The reason why a message has no end yet.
enum Halt {
    /// DynamoDB failed, or an item cannot be read.
    Failed(StoreError),
    /// The deadline came. No further call is made: the result is delivered again.
    OutOfTime,
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// Whether a result belongs to the transfer that the payment asks for. The log names the fields
/// that differ, but neither amounts nor accounts.
fn is_of_transfer(head: &Head, result: &SettlementResult) -> bool {
    if head.money == result.money && head.payee == result.payee {
        return true;
    }
    let amount_differs = head.money.amount != result.money.amount;
    let currency_differs = head.money.currency != result.money.currency;
    let payee_differs = head.payee != result.payee;
    let (payment_id, status) = (head.payment_id, head.state.status());
    tracing::error!(
        %payment_id,
        %status,
        amount_differs,
        currency_differs,
        payee_differs,
        "a settlement result is of another transfer than the payment; the payment is unchanged, and SQS retries this"
    );
    false
}

/// Whether another payment has this transaction id. The index lags, so it may not show two payments that
/// are settled at the same moment. A failed read is only logged.
async fn is_shared(store: &Store, id: &TransactionId, payment_id: PaymentId) -> bool {
    match store.payments_of_transaction(id).await {
        Ok(carriers) => carriers.iter().any(|key| key.slot.payment_id != payment_id),
        Err(error) => {
            let causes = causes(&error);
            tracing::warn!(%payment_id, transaction_id = %id, ?causes, "a transaction's payments cannot be read");
            false
        }
    }
}

/// A message that is being handled.
pub(crate) struct Message<'m> {
    settle: &'m Settle,
    deadline: &'m Deadline,
    id: &'m str,
    body: &'m str,
}

impl<'m> Message<'m> {
    /// Creates the message from SQS's.
    pub(crate) fn new(settle: &'m Settle, message: &'m SqsMessage, deadline: &'m Deadline) -> Self {
        let [id, body] = [&message.message_id, &message.body].map(|text| text.as_deref().unwrap_or_default());
        Self { settle, deadline, id, body }
    }

    /// Handles the message.
    ///
    /// # Errors
    /// [`StoreError`] if a call failed and a retry can help.
    pub(crate) async fn handle(self) -> Result<Handled, StoreError> {
        let message_id = self.id;
        let result = match SettlementResult::parse(self.body) {
            Ok(result) => result,
            Err(error) => {
                let causes = causes(&error);
                tracing::error!(message_id, ?causes, "a settlement result cannot be read");
                return Ok(Handled::new(message_id, MessageEnd::Poison));
            }
        };
        let payment_id = result.payment_id;
        let (end, is_shared) = match self.settle(&result).await {
            Ok(settled) => settled,
            Err(Halt::OutOfTime) => return Ok(Handled::new(message_id, MessageEnd::OutOfTime)),
            Err(Halt::Failed(error)) => {
                let causes = causes(&error);
                tracing::warn!(message_id, %payment_id, ?causes, "a payment was not settled; SQS retries the message");
                return match error.kind() {
                    OutageKind::Broken => Ok(Handled::new(message_id, MessageEnd::Outage(OutageKind::Broken))),
                    _ => Err(error),
                };
            }
        };
        match &end {
            MessageEnd::Unknown => {
                tracing::error!(message_id, %payment_id, "the payment does not exist; SQS retries this");
            }
            MessageEnd::TooEarly => {
                tracing::error!(message_id, %payment_id, "the payment is not pending yet; SQS retries this");
            }
            _ => {}
        }
        if is_shared && let Settlement::Processed(transaction_id) = &result.settlement {
            tracing::error!(message_id, %payment_id, %transaction_id, "another payment has this transaction id");
        }
        Ok(Handled { is_shared, ..Handled::new(message_id, end) })
    }

    /// The store, for one more call.
    fn store(&self) -> Result<&Store, Halt> {
        if self.deadline.has_come() { Err(Halt::OutOfTime) } else { Ok(&self.settle.store) }
    }

    /// Settles the payment. Returns the end, and whether another payment has the same transaction id.
    async fn settle(&self, result: &SettlementResult) -> Result<(MessageEnd, bool), Halt> {
        let end = match &result.echo {
            // An echoed payment that is due as at first saves a read. If its key leads to no head,
            // the details decide.
            Some(payment) => match self.settle_at(&payment.guessed_key(), result).await? {
                MessageEnd::Unknown => self.settle_by_details(result).await?,
                end => end,
            },
            None => self.settle_by_details(result).await?,
        };
        let is_shared = match (&end, &result.settlement) {
            (MessageEnd::Settled(_) | MessageEnd::Repeated, Settlement::Processed(id)) => {
                is_shared(self.store()?, id, result.payment_id).await
            }
            _ => false,
        };
        Ok((end, is_shared))
    }

    async fn settle_by_details(&self, result: &SettlementResult) -> Result<MessageEnd, Halt> {
        let Some(details) = self.store()?.details(result.payment_id).await? else { return Ok(MessageEnd::Unknown) };
        self.settle_at(&details.key(), result).await
    }

    /// Settles the payment at `key`: puts its settled head into history, which decides, and then
    /// settles the head in the hot table. A repeated result completes an unfinished settlement.
    async fn settle_at(&self, key: &HeadKey, result: &SettlementResult) -> Result<MessageEnd, Halt> {
        // Only settlement leaves PENDING, so a head that was pending a moment ago still is, or
        // history has its settlement.
        let recent = self.store()?.recent_head(key).await?;
        let recent = recent.and_then(|head| Some((self.step(head.known(), result).ok()?, head)));
        let (step, pending) = match recent {
            Some(pending) => pending,
            None => {
                let Some(head) = self.store()?.stored_head(key).await? else {
                    let archived = self.store()?.archived_head(key).await?;
                    return Ok(archived.map_or(MessageEnd::Unknown, |head| self.end_of(&head, result)));
                };
                let Ok(step) = self.step(head.known(), result) else { return Ok(self.end_of(head.known(), result)) };
                (step, head)
            }
        };
        // Test: a_result_of_another_transfer_settles_nothing_and_a_corrected_one_settles
        if !is_of_transfer(pending.known(), result) {
            return Ok(MessageEnd::OtherTransfer);
        }
        let (Decided::Now(settled) | Decided::Before(settled)) =
            self.store()?.decide_settlement(&pending, &step).await?;
        if settled.known().settled_at().is_none() {
            return Ok(self.end_of(settled.known(), result));
        }
        // Test: another_result_is_a_conflict_and_completes_it_as_it_was_decided
        // The payment's own settlement is completed even if this result is another one: its own
        // result may never come again.
        let moved = self.store()?.follow_settlement(&settled).await?;
        Ok(match (self.end_of(settled.known(), result), moved) {
            (MessageEnd::Repeated, Moved::Done(_)) => MessageEnd::Settled(result.settlement.clone()),
            (MessageEnd::Repeated, Moved::Elsewhere(Some(head))) => self.end_of(&head, result),
            // The payment was settled, reported, and has expired; or the result is another one.
            (end, _) => end,
        })
    }

    fn step(&self, head: &Head, result: &SettlementResult) -> Result<Transition, Decision> {
        head.transition(
            &Event::Settle(result.settlement.clone()),
            self.settle.clock.now(),
            Actor::transaction_service(),
        )
    }

    /// Returns the end of a message whose result does not change the head.
    fn end_of(&self, head: &Head, result: &SettlementResult) -> MessageEnd {
        let end = MessageEnd::of(self.step(head, result).err());
        if end == MessageEnd::Repeated && !is_of_transfer(head, result) {
            return MessageEnd::OtherTransfer;
        }
        if end != MessageEnd::Conflicting {
            return end;
        }
        // This log entry is the only record of the contradicting result.
        let new_transaction_id =
            if let Settlement::Processed(id) = &result.settlement { Some(id.as_str()) } else { None };
        let stored_transaction_id = head.transaction_id().map(TransactionId::as_str);
        let (payment_id, status) = (head.payment_id, head.state.status());
        tracing::error!(
            %payment_id,
            %status,
            stored_transaction_id,
            new_transaction_id,
            "a settlement result contradicts the payment's status; the payment is unchanged"
        );
        let moved_money = head.state == State::Cancelled && new_transaction_id.is_some();
        if moved_money { MessageEnd::CancelledProcessed } else { end }
    }
}
