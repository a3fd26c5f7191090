//! The story of a payment: the answers to its client, each change of its head, and each request, in their order.

use chrono::{DateTime, Utc};
use payments_machine::layers::attributes::{number, text};
use serde_json::Value;

use crate::facts::heads::id_of;
use crate::facts::intent::{Amendment, Intent};
use crate::world::bank::Bank;

/// The most lines.
const LINES: usize = 60;

/// Returns the story of the payment that a violation names, if it names one.
pub(crate) fn tell(bank: &Bank, violation: &str) -> Vec<String> {
    let names =
        |word: &str| violation.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|known| known == word);
    let intent = {
        let state = bank.state();
        let named = |intent: &&Intent| {
            intent.amounts().iter().any(|amount| names(&amount.to_string()))
                || intent.accepted.as_deref().is_some_and(&names)
        };
        state.intents.iter().find(named).cloned()
    };
    let Some(intent) = intent else { return Vec::new() };
    let (mut lines, amounts) = (Vec::<(DateTime<Utc>, String)>::new(), intent.amounts());
    for change in bank.changes.from(0) {
        let head = change.after.as_ref().or(change.before.as_ref()).unwrap_or(&Value::Null);
        let is_ours =
            Some(id_of(&change.key.1)) == intent.accepted.as_deref() || amounts.contains(&number(head, "amountMinor"));
        if is_ours {
            lines.push((change.at, shown(change.before.as_ref(), change.after.as_ref())));
        }
    }
    for sent in bank.requests.sent().clone() {
        if intent.has_amount(&sent.request["amountMinor"]) {
            lines.push((
                sent.at,
                format!("request of {}, attempt {}", sent.request["amountMinor"], sent.request["dispatchAttempt"]),
            ));
        }
    }
    lines.sort_by_key(|(at, _)| *at);
    let told = format!(
        "{} for {} of {}: accepted as {:?}, cancelled: {}, refused: {}",
        intent.amount, intent.scheduled_for, intent.account, intent.accepted, intent.cancelled, intent.refused
    );
    let lines = lines.into_iter().map(|(at, what)| format!("{} {what}", at.format("%F %T%.3f")));
    let amendments = intent.amendments.iter().map(|amendment| {
        let Amendment { key, seen, wanted, accepted, .. } = amendment;
        format!("{key} of version {seen}: {} for {}, acknowledged: {accepted}", wanted.amount, wanted.scheduled_for)
    });
    std::iter::once(told).chain(amendments).chain(lines).take(LINES).collect()
}

fn shown(before: Option<&Value>, after: Option<&Value>) -> String {
    let one = |item: Option<&Value>| match item {
        None => "nothing".to_owned(),
        Some(item) => {
            let unreported = if item.get("unreported").is_some() { ", unreported" } else { "" };
            format!(
                "{} v{} of {} attempt {}{unreported}",
                text(item, "status"),
                number(item, "version"),
                number(item, "amountMinor"),
                number(item, "dispatchAttempt")
            )
        }
    };
    format!("{} -> {}", one(before), one(after))
}
