//! The law of legal changes: a head begins, takes a legal step, or leaves the hot table.

use serde_json::Value;

use crate::facts::heads::{due_of, id_of, is_settled, trail};
use crate::laws::amended;
use crate::laws::both_tables::{CONSTANT, as_in_history};
use crate::laws::one_settlement::check_over;
use payments_machine::layers::attributes::{number, text};

/// The legal transitions.
const LEGAL: [(&str, &str); 4] =
    [("SCHEDULED", "PENDING"), ("SCHEDULED", "CANCELLED"), ("PENDING", "PROCESSED"), ("PENDING", "FAILED")];

/// Checks a change of a head in the hot table: the head begins, takes a step, or leaves. Returns the violation, if there
/// is one.
#[must_use]
pub fn check_change(before: Option<&Value>, after: Option<&Value>) -> Option<String> {
    match (before, after) {
        (None, Some(after)) => check_beginning(after),
        (Some(before), Some(after)) => check_step(before, after),
        (Some(before), None) => check_leaving(before),
        (None, None) => None,
    }
}

/// Checks that a head begins as SCHEDULED, and is due at the instant of its slot.
fn check_beginning(head: &Value) -> Option<String> {
    let is_at_slot = text(head, "due").ends_with(text(head, "sk"));
    let good = text(head, "status") == "SCHEDULED" && number(head, "version") == 1 && is_at_slot && is_consistent(head);
    (!good).then(|| format!("begins as {head}"))
}

/// Checks that a step is an amendment, a transition, a later dispatch attempt, or a report, which removes a settled head
/// from `unreported`.
fn check_step(before: &Value, after: &Value) -> Option<String> {
    if before["details"] != after["details"] {
        return amended::check_step(before, after, is_consistent(after));
    }
    if let Some(name) = CONSTANT.into_iter().find(|name| before[*name] != after[*name]) {
        return Some(format!("changed its {name} from {} to {}", before[name], after[name]));
    }
    if due_of(before) != due_of(after) {
        return Some(format!("was due at {:?} and is due at {:?}", due_of(before), due_of(after)));
    }
    let (from, to) = (text(before, "status"), text(after, "status"));
    let (old, new) = (trail(before), trail(after));
    let (attempt, next) = (number(before, "dispatchAttempt"), number(after, "dispatchAttempt"));
    let is_redrive = from == "PENDING" && to == "PENDING" && before["version"] == after["version"];
    // A redrive may skip dispatch attempts, and changes nothing but their number and time.
    if is_redrive && next > attempt {
        let mut redriven = before.clone();
        for name in ["dispatchAttempt", "sentAgainAt"] {
            redriven[name] = after[name].clone();
        }
        return (redriven != *after).then(|| format!("was redriven as {before} and became {after}"));
    }
    if before.get("unreported").is_some() && as_in_history(before) == as_in_history(after) {
        return after.get("unreported").is_some().then(|| format!("was reported as {before} and became {after}"));
    }
    // The attempt may go down: a settlement overwrites a redrive that came between its two writes.
    let attempts = if to == "PENDING" { next == 1 } else { next <= attempt };
    let steps = number(after, "version") == number(before, "version") + 1 && new.starts_with(old);
    let is_last_amendment = before["amended"] == after["amended"] || is_settled(to);
    let legal = LEGAL.contains(&(from, to)) && steps && attempts && is_last_amendment && is_consistent(after);
    let (old, new) = (number(before, "version"), number(after, "version"));
    (!legal).then(|| format!("was {from} v{old} and became {to} v{new}: {after}"))
}

/// Checks that a head that leaves the hot table is terminal, and reported if it was settled.
fn check_leaving(head: &Value) -> Option<String> {
    let good = check_over(head).is_none() && head.get("unreported").is_none();
    (!good).then(|| format!("is gone from the hot table as {head}"))
}

/// Whether the attributes of a head agree with each other.
fn is_consistent(head: &Value) -> bool {
    let status = text(head, "status");
    let settled = is_settled(status);
    let last = trail(head).last().map(|entry| text(&entry["M"], "status"));
    let changes = u64::try_from(trail(head).len()).unwrap_or(0) + amended::count(text(head, "details"));
    changes == number(head, "version")
        && amended::is_consistent(head)
        && last == Some(status)
        && text(head, "due").starts_with(&format!("{status}#"))
        && text(head, "due").ends_with(&format!("#{}", id_of(text(head, "sk"))))
        && head.get("transactionId").is_some() == (status == "PROCESSED")
        && ["failureCode", "failureReason"].iter().all(|name| head.get(*name).is_some() == (status == "FAILED"))
        && head.get("unreported").is_some() == settled
        && head.get("expires_at").is_none()
        && head.get("settledAt").is_some() == settled
        && (head.get("sentAgainAt").is_none() || status == "PENDING")
}
