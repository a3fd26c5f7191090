//! Heads of payments as both tables hold them: where they are, and what their keys say.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use payments_machine::layers::attributes::{Key, number, text};

pub use payments_machine::layers::attributes::is_of_head;

/// The name of the hot table.
pub(crate) const HOT: &str = "payments";

/// The items of both tables.
#[derive(Debug, Default)]
pub struct Tables {
    /// The items of the hot table.
    pub hot: BTreeMap<Key, Value>,
    /// The items of the long-term table.
    pub history: BTreeMap<Key, Value>,
}

impl Tables {
    /// Returns the heads of both tables, each once.
    #[must_use]
    pub fn heads(&self) -> BTreeMap<&Key, &Value> {
        self.history.iter().chain(&self.hot).filter(|((pk, _), _)| is_of_head(pk)).collect()
    }
}

/// Returns the payment's id from its head's sort key.
#[must_use]
pub fn id_of(sk: &str) -> &str {
    sk.split_once('#').map_or("", |(_, id)| id)
}

/// Returns when a payment is due by its head's due key: date and instant.
#[must_use]
pub fn due_of(head: &Value) -> (&str, &str) {
    let mut parts = text(head, "due").split('#').skip(1);
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

/// Whether a status is that of a settled payment.
#[must_use]
pub fn is_settled(status: &str) -> bool {
    matches!(status, "PROCESSED" | "FAILED")
}

/// Returns the payment of a head and its transfer, as requests and results name them.
#[must_use]
pub fn transfer(head: &Value) -> Value {
    json!({
        "paymentId": id_of(text(head, "sk")), "amountMinor": number(head, "amountMinor"), "currency": text(head, "currency"),
        "payeeAccountId": text(head, "payeeAccountId"),
    })
}

/// The time of a head's last change, by its trail.
pub(crate) fn last_change(head: &Value) -> Option<DateTime<Utc>> {
    text(&trail(head).last()?["M"], "at").parse().ok()
}

/// The trail of a head, its first entry first.
pub(crate) fn trail(head: &Value) -> &[Value] {
    head["trail"]["L"].as_array().map_or(&[], Vec::as_slice)
}

/// A head of one change, for tests.
#[cfg(test)]
pub(crate) fn made(status: &str, version: u32, at: &str) -> Value {
    json!({
        "sk": { "S": "2026-03-12T08:00:00Z#7" }, "status": { "S": status }, "version": { "N": version.to_string() },
        "trail": { "L": [{ "M": { "status": { "S": status }, "at": { "S": at } } }] },
    })
}
