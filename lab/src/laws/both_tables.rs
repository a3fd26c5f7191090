//! The law of both tables: a head in both is the same or is being settled. A hot head that is settled is in both.

use serde_json::Value;

use crate::facts::heads::{due_of, is_settled, trail};
use payments_machine::layers::attributes::{number, remove, text};

/// The attributes of a head that only the hot table has.
const HOT: [&str; 2] = ["unreported", "expires_at"];

/// The attributes of a head that no change but an amendment may change.
pub(super) const CONSTANT: [&str; 10] =
    ["pk", "sk", "shard", "payeeAccountId", "amountMinor", "currency", "scheduledFor", "reference", "details", "moved"];

/// Returns a head of the hot table as the long-term table stores it: without the attributes that only the hot table has.
#[must_use]
pub fn as_in_history(hot: &Value) -> Value {
    let mut head = hot.clone();
    remove(&mut head, &HOT);
    head
}

/// Checks that a head is the same in both tables, or is pending in the hot table while the long-term table has its
/// settlement. Also checks that a settled head of the hot table is in both. Returns the violation, if there is one.
pub(super) fn check_both(hot: &Value, history: Option<&Value>) -> Option<String> {
    let Some(history) = history else {
        return is_settled(text(hot, "status")).then(|| format!("is settled, and not in the long-term table: {hot}"));
    };
    let steps = number(history, "version") == number(hot, "version") + 1 && trail(history).starts_with(trail(hot));
    let follows = steps
        && due_of(hot) == due_of(history)
        && text(hot, "status") == "PENDING"
        && is_settled(text(history, "status"))
        && CONSTANT.iter().all(|name| hot[*name] == history[*name]);
    (as_in_history(hot) != *history && !follows).then(|| format!("differs between the tables: {hot} and {history}"))
}
