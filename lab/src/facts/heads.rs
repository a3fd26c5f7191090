//! Heads of payments as both tables hold them: where they are, and what their keys say.

use std::collections::BTreeMap;

use serde_json::Value;

use payments_machine::layers::attributes::{Key, text};

pub use payments_machine::layers::attributes::is_of_head;

/// The name of the hot table.
pub(crate) const HOT: &str = "payments";

/// What is in both tables.
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
