//! What becomes of one report, and what the numbers of a batch are.

use metrique_writer::Entry;
use payments_model::{Decision, Settlement};

/// The end of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The payment is settled now.
    Settled(Settlement),
    /// It already was, the same way: a repetition.
    Repeated,
    /// It already was, differently: nothing changes, and somebody has to look.
    Conflicting,
    /// It is not pending yet: the message comes again.
    TooEarly,
    /// Nobody knows such a payment: the message comes again, and at last to the dead letters.
    Unknown,
    /// The message cannot be read: it comes again, and at last to the dead letters.
    Poison,
    /// Something outside failed: the message comes again.
    Outage,
}

impl Verdict {
    /// The end of a report that met a payment which did not take the step.
    pub(crate) fn of(decision: Option<Decision>) -> Self {
        match decision {
            Some(Decision::Already) => Self::Repeated,
            Some(Decision::Conflict) => Self::Conflicting,
            // A payment that would move after all had changed in between: the next try decides.
            Some(Decision::TooEarly | Decision::TooLate) | None => Self::TooEarly,
        }
    }

    /// Whether the message has to come again.
    pub(crate) fn comes_again(&self) -> bool {
        !matches!(self, Self::Settled(_) | Self::Repeated | Self::Conflicting)
    }
}

/// The numbers of one batch.
#[derive(Debug, Default, Entry)]
#[entry(rename_all = "PascalCase")]
pub(crate) struct Tally {
    processed: u64,
    failed: u64,
    repeated_outcomes: u64,
    conflicting_outcomes: u64,
    early_outcomes: u64,
    unknown_payments: u64,
    poison_messages: u64,
    settle_outages: u64,
    /// Transaction ids that more than one payment carries.
    pub(crate) shared_transaction_ids: u64,
}

impl Tally {
    /// Counts one more end.
    pub(crate) fn count(&mut self, verdict: &Verdict) {
        let counter = match verdict {
            Verdict::Settled(Settlement::Processed(_)) => &mut self.processed,
            Verdict::Settled(Settlement::Failed(_)) => &mut self.failed,
            Verdict::Repeated => &mut self.repeated_outcomes,
            Verdict::Conflicting => &mut self.conflicting_outcomes,
            Verdict::TooEarly => &mut self.early_outcomes,
            Verdict::Unknown => &mut self.unknown_payments,
            Verdict::Poison => &mut self.poison_messages,
            Verdict::Outage => &mut self.settle_outages,
        };
        *counter += 1;
    }
}
