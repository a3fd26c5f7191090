//! Intents: what clients want, and what they were told.

use serde_json::{Value, json};

/// What a client wants, and what it was told.
#[derive(Debug, Clone)]
pub(crate) struct Intent {
    /// The account.
    pub(crate) account: String,
    /// The idempotency key.
    pub(crate) key: String,
    /// The amount, which no other intent has.
    pub(crate) amount: u64,
    /// When the payment is to be made, as the client writes it.
    pub(crate) scheduled_for: String,
    /// The payment's id, once a client was told.
    pub(crate) accepted: Option<String>,
    /// Whether the API refused the payment for good.
    pub(crate) refused: bool,
    /// Whether a client was told that the payment is cancelled.
    pub(crate) cancelled: bool,
}

impl Intent {
    /// Returns the body of the create.
    pub(crate) fn body(&self) -> Value {
        json!({
            "payeeAccountId": "landlord", "amountMinor": self.amount, "currency": "GBP",
            "scheduledFor": self.scheduled_for, "data": { "note": format!("rent {}", self.amount) },
        })
    }

    /// Returns the entry of a batch.
    pub(crate) fn entry(&self) -> Value {
        let mut entry = self.body();
        entry["accountId"] = self.account.clone().into();
        entry["idempotencyKey"] = self.key.clone().into();
        entry
    }
}
