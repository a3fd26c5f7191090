//! Intents: what clients want, and what they were told.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// What a client wants, and what it was told.
#[derive(Debug, Clone)]
pub struct Intent {
    /// The account.
    pub account: String,
    /// The idempotency key.
    pub key: String,
    /// The amount, which no other intent has.
    pub amount: u64,
    /// When the payment is to be made, as the client writes it: a date, or an instant in whole seconds of UTC.
    pub scheduled_for: String,
    /// The payment's id, once a client was told.
    pub accepted: Option<String>,
    /// Whether the API refused the payment for good.
    pub refused: bool,
    /// Whether a client was told that the payment is cancelled.
    pub cancelled: bool,
    /// Whether the transaction service contradicts itself, so that either settlement is right.
    pub contested: bool,
}

impl Intent {
    /// Returns an intent of which no client was told anything yet.
    #[must_use]
    pub fn new(account: String, amount: u64, scheduled_for: String) -> Self {
        let (key, accepted) = (format!("key-{amount}"), None);
        Self { account, key, amount, scheduled_for, accepted, refused: false, cancelled: false, contested: false }
    }

    /// Returns the id that a client was told.
    ///
    /// # Errors
    /// If no client was told one.
    pub fn id(&self) -> Result<&str> {
        self.accepted.as_deref().context("the payment was not accepted")
    }

    /// Returns the body of the create.
    #[must_use]
    pub fn body(&self) -> Value {
        json!({
            "payeeAccountId": "landlord", "amountMinor": self.amount, "currency": "GBP",
            "scheduledFor": self.scheduled_for, "data": { "note": format!("rent {}", self.amount) },
        })
    }

    /// Returns the entry of a batch.
    #[must_use]
    pub fn entry(&self) -> Value {
        let mut entry = self.body();
        entry["accountId"] = self.account.clone().into();
        entry["idempotencyKey"] = self.key.clone().into();
        entry
    }

    /// Returns the request that the transaction service may receive, as one that it did receive has it where clients
    /// do not decide: the dispatch attempt, the id before a client is told, the instant of a date.
    #[must_use]
    pub fn request(&self, received: &Value) -> Value {
        let body = self.body();
        json!({
            "paymentId": self.accepted.as_deref().map_or_else(|| received["paymentId"].clone(), Value::from),
            "accountId": self.account, "payeeAccountId": body["payeeAccountId"], "amountMinor": self.amount,
            "currency": body["currency"], "data": body["data"],
            "dueAt": self.due_at().map_or_else(|| received["dueAt"].clone(), Value::from),
            "dispatchAttempt": received["dispatchAttempt"],
        })
    }

    /// Returns the instant when the payment is due; `None` if the client named a date.
    #[must_use]
    pub fn due_at(&self) -> Option<&str> {
        self.scheduled_for.contains('T').then_some(&self.scheduled_for)
    }
}
