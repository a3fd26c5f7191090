//! All that is known of a payment.

use payments_model::{Details, Finding, Head, PaymentId};

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
    /// The results that contradict it, and the number of those that cannot be read.
    pub(super) findings: Vec<Finding>,
    pub(super) unreadable: usize,
    /// The webhook endpoints; empty if they cannot be read.
    pub(super) endpoints: Vec<Seen>,
}
