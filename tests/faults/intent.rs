//! Intents: what a client wants, and what it was told.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// What a client wants, and what it was told.
#[derive(Debug, Clone)]
pub(crate) struct Intent {
    pub(crate) account: String,
    pub(crate) key: String,
    pub(crate) amount: u64,
    pub(crate) due_at: String,
    /// The id, once a create succeeded.
    pub(crate) accepted: Option<String>,
    /// Whether a cancel succeeded.
    pub(crate) cancelled: bool,
    /// Whether the transaction service contradicts itself, so that either settlement is right.
    pub(crate) contested: bool,
}

impl Intent {
    /// The id that the client was told.
    pub(crate) fn id(&self) -> Result<&str> {
        self.accepted.as_deref().context("the payment was not accepted")
    }

    /// The body of the create.
    pub(crate) fn body(&self) -> Value {
        json!({
            "payeeAccountId": "landlord", "amountMinor": self.amount, "currency": "GBP",
            "scheduledFor": self.due_at, "data": { "note": format!("rent {}", self.amount) },
        })
    }

    /// The request that the transaction service may receive, without the attempt.
    pub(crate) fn request(&self, payment_id: &str) -> Value {
        json!({
            "paymentId": payment_id, "accountId": self.account, "payeeAccountId": "landlord",
            "amountMinor": self.amount, "currency": "GBP", "dueAt": self.due_at,
            "data": { "note": format!("rent {}", self.amount) },
        })
    }
}
