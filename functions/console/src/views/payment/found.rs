//! All that is known of a payment.

use payments_model::{Details, Finding, Head, PaymentData, PaymentId};

use crate::views::payment::events::Seen;

/// The stored items of a payment.
pub(super) struct Found {
    pub(super) id: PaymentId,
    /// Its first details, if they exist and can be read.
    pub(super) first: Option<Details>,
    /// Its head; `None` if the create did not complete, or the head is lost.
    pub(super) head: Option<Head>,
    /// The details in force and before, the latest first, without the first ones; or why they cannot be shown.
    pub(super) chain: Result<Vec<Details>, &'static str>,
    /// The client's data, if it has some; or why that is not shown.
    pub(super) data: Option<Result<PaymentData, &'static str>>,
    /// The results that contradict it, and the number of those that cannot be read.
    pub(super) findings: Vec<Finding>,
    pub(super) unreadable: usize,
    /// The webhook endpoints; empty if they cannot be read.
    pub(super) endpoints: Vec<Seen>,
}

impl Found {
    /// The details in force, if they can be read.
    pub(super) fn in_force(&self) -> Option<&Details> {
        match (&self.head, &self.chain) {
            (Some(head), Ok(chain)) if head.amendment.is_some() => chain.first(),
            (Some(head), Err(_)) if head.amendment.is_some() => None,
            _ => self.first.as_ref(),
        }
    }
}
