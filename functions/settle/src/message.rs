//! Handles one message: reads the settlement result, settles the payment, and logs the message's end once.

use aws_lambda_events::sqs::SqsMessage;
use payments_boot::Deadline;
use payments_model::{
    Actor, Event, Finding, Head, HeadKey, Outage as _, OutageKind, PaymentId, Refusal, Settlement, State, Told,
    TransactionId, Transition, causes,
};
use payments_queue::SettlementResult;
use payments_store::{Decided, Moved, Store, StoreError};

use crate::function::Settle;
use crate::message_end::{Handled, MessageEnd};

/// The reason why a message has no end yet.
enum Halt {
    /// DynamoDB failed, or an item cannot be read.
    Failed(StoreError),
    /// The deadline came. No further call is made, and SQS delivers the result again.
    OutOfTime,
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// Whether a result has the amount, the currency and the payee of the payment. If not, a log line names
/// the fields that differ, but no amounts or accounts.
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

/// Whether another payment has this transaction id. The index lags, so two payments that are settled at
/// the same moment may miss each other. A failed read is only logged.
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
    /// Creates the message from an SQS message.
    pub(crate) fn new(settle: &'m Settle, message: &'m SqsMessage, deadline: &'m Deadline) -> Self {
        let [id, body] = [&message.message_id, &message.body].map(|text| text.as_deref().unwrap_or_default());
        Self { settle, deadline, id, body }
    }

    /// Handles the message.
    ///
    /// # Errors
    /// [`StoreError`] if a call failed and a retry may succeed.
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
    ///
    /// # Errors
    /// [`Halt::OutOfTime`] if the deadline has come.
    fn store(&self) -> Result<&Store, Halt> {
        if self.deadline.has_come() { Err(Halt::OutOfTime) } else { Ok(&self.settle.store) }
    }

    /// Settles the payment. Returns the message's end, and whether another payment has the same transaction id.
    async fn settle(&self, result: &SettlementResult) -> Result<(MessageEnd, bool), Halt> {
        let end = match &result.echo {
            // The result echoes the payment's account and due time. For a payment with its first due time, they give
            // the head's key without a read. If no head has this key, the details give the key.
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
        // This read may be a moment behind. Only a settlement ends PENDING. So a head that was pending a
        // moment ago is still pending, or history has its settlement.
        let recent = self.store()?.recent_head(key).await?;
        let recent = recent.and_then(|head| Some((self.step(head.known(), result).ok()?, head)));
        let (step, pending) = match recent {
            Some(pending) => pending,
            None => {
                let Some(head) = self.store()?.stored_head(key).await? else {
                    let archived = self.store()?.archived_head(key).await?;
                    let Some(head) = archived else { return Ok(MessageEnd::Unknown) };
                    return self.end_of(&head, result).await;
                };
                let Ok(step) = self.step(head.known(), result) else { return self.end_of(head.known(), result).await };
                (step, head)
            }
        };
        // Test: a_result_of_another_transfer_settles_nothing_and_a_corrected_one_settles
        if !is_of_transfer(pending.known(), result) {
            return Ok(MessageEnd::OtherTransfer);
        }
        let (Decided::Put(settled) | Decided::Existing(settled)) =
            self.store()?.decide_settlement(&pending, &step).await?;
        if settled.known().settled_at().is_none() {
            return self.end_of(settled.known(), result).await;
        }
        // Test: another_result_is_a_conflict_and_completes_it_as_it_was_decided
        // History's settlement is completed even if this result differs from it: the result that made
        // history's settlement may never come again.
        let moved = self.store()?.follow_settlement(&settled).await?;
        match (self.end_of(settled.known(), result).await?, moved) {
            (MessageEnd::Repeated, Moved::Done(_)) => Ok(MessageEnd::Settled(result.settlement.clone())),
            (MessageEnd::Repeated, Moved::Elsewhere(Some(head))) => self.end_of(&head, result).await,
            // Either the hot table's head is gone, because the payment was settled and reported and has
            // expired, or this result differs from history's settlement.
            (end, _) => Ok(end),
        }
    }

    fn step(&self, head: &Head, result: &SettlementResult) -> Result<Transition, Refusal> {
        head.transition(
            &Event::Settle(result.settlement.clone()),
            self.settle.clock.now(),
            Actor::transaction_service(),
        )
    }

    /// Returns the end of a message whose result does not change the head. A contradicting result becomes a finding
    /// first: once SQS has deleted the message, nothing else has the result.
    async fn end_of(&self, head: &Head, result: &SettlementResult) -> Result<MessageEnd, Halt> {
        let end = MessageEnd::from_refusal(self.step(head, result).err());
        if end == MessageEnd::Repeated && !is_of_transfer(head, result) {
            return Ok(MessageEnd::OtherTransfer);
        }
        if end != MessageEnd::Conflicting {
            return Ok(end);
        }
        let SettlementResult { settlement, money, payee, .. } = result.clone();
        let finding = Finding {
            key: head.key(),
            money: head.money,
            payee: head.payee.clone(),
            stands: head.state.clone(),
            told: Told { settlement, money, payee },
            found_at: self.settle.clock.now(),
            closed: None,
        };
        let is_new = self.store()?.put_finding(&finding).await?;
        let new_transaction_id =
            if let Settlement::Processed(id) = &result.settlement { Some(id.as_str()) } else { None };
        let stored_transaction_id = head.transaction_id().map(TransactionId::as_str);
        let (payment_id, status) = (head.payment_id, head.state.status());
        tracing::error!(
            %payment_id,
            %status,
            stored_transaction_id,
            new_transaction_id,
            finding = %finding.told.hash(),
            is_new,
            "a settlement result contradicts the payment's status; the payment is unchanged"
        );
        let moved_money = head.state == State::Cancelled && new_transaction_id.is_some();
        Ok(if moved_money { MessageEnd::CancelledProcessed } else { end })
    }
}
