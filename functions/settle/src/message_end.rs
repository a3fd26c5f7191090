//! The end of each message, and the metrics of a batch.

use metrique_writer::Entry;
use payments_model::{OutageKind, Refusal, Settlement};

/// The end of one message. With some ends, SQS retries the message, and moves it to the dead letters
/// after the last retry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MessageEnd {
    /// The message settled the payment.
    Settled(Settlement),
    /// The payment already has this settlement.
    Repeated,
    /// The payment has another settlement, or the payment is cancelled and the result says that it failed.
    /// Nothing changes; an operator has to act.
    Conflicting,
    /// The payment is cancelled, but the result says that it was processed: money moved. Nothing changes;
    /// an operator has to act.
    CancelledProcessed,
    /// The result has another amount, currency or payee than the payment. Nothing changes; the
    /// message is retried, and an operator has to act.
    OtherTransfer,
    /// The payment is not pending yet. The message is retried.
    TooEarly,
    /// The payment does not exist. The message is retried.
    Unknown,
    /// The message cannot be read, and is retried.
    Poison,
    /// A call to DynamoDB failed, or the head cannot be read. The message is retried.
    Outage(OutageKind),
    /// The deadline came before all calls for the message were made. The message is retried.
    OutOfTime,
}

impl MessageEnd {
    /// Returns the end of a message whose payment did not make the transition.
    pub(crate) fn from_refusal(refusal: Option<Refusal>) -> Self {
        match refusal {
            Some(Refusal::Already) => Self::Repeated,
            Some(Refusal::Conflict) => Self::Conflicting,
            // `None`: the payment has changed in between, and the result can change it now. The next try
            // decides the end.
            Some(Refusal::TooEarly | Refusal::TooLate) | None => Self::TooEarly,
        }
    }

    /// Whether the message is retried.
    pub(crate) fn is_retried(&self) -> bool {
        !matches!(self, Self::Settled(_) | Self::Repeated | Self::Conflicting | Self::CancelledProcessed)
    }
}

/// A message that has an end.
#[derive(Debug)]
pub(crate) struct Handled {
    /// The message's id.
    pub(crate) id: String,
    pub(crate) end: MessageEnd,
    /// Whether another payment has the same transaction id.
    pub(crate) is_shared: bool,
}

impl Handled {
    /// Creates a handled message whose transaction id no other payment has.
    pub(crate) fn new(id: impl Into<String>, end: MessageEnd) -> Self {
        Self { id: id.into(), end, is_shared: false }
    }
}

/// The metrics of a batch.
#[derive(Debug, Default, Entry)]
#[entry(rename_all = "PascalCase")]
pub(crate) struct Tally {
    processed: u64,
    failed: u64,
    repeated_results: u64,
    conflicting_results: u64,
    cancelled_payments_processed: u64,
    results_of_other_transfers: u64,
    early_results: u64,
    unknown_payments: u64,
    poison_messages: u64,
    settle_outages: u64,
    /// Messages that were not begun, or not finished, before the deadline.
    out_of_time: u64,
    /// Transaction ids that more than one payment has.
    shared_transaction_ids: u64,
}

impl Tally {
    /// Counts a message.
    pub(crate) fn count(&mut self, message: &Handled) {
        self.shared_transaction_ids += u64::from(message.is_shared);
        let counter = match &message.end {
            MessageEnd::Settled(Settlement::Processed(_)) => &mut self.processed,
            MessageEnd::Settled(Settlement::Failed(_)) => &mut self.failed,
            MessageEnd::Repeated => &mut self.repeated_results,
            MessageEnd::Conflicting => &mut self.conflicting_results,
            MessageEnd::CancelledProcessed => &mut self.cancelled_payments_processed,
            MessageEnd::OtherTransfer => &mut self.results_of_other_transfers,
            MessageEnd::TooEarly => &mut self.early_results,
            MessageEnd::Unknown => &mut self.unknown_payments,
            MessageEnd::Poison => &mut self.poison_messages,
            MessageEnd::Outage(_) => &mut self.settle_outages,
            MessageEnd::OutOfTime => &mut self.out_of_time,
        };
        *counter += 1;
    }
}
