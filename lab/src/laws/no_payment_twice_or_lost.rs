//! The law of no payment twice or lost: each exists once, as its client wants it, and answers to clients stay true.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::facts::heads::{Tables, id_of, is_of_head};
use crate::facts::intent::Intent;
use crate::laws::amended;
use crate::laws::both_tables::check_both;
use payments_machine::layers::attributes::{Key, number, text};

/// Checks that each accepted payment exists, that each payment exists only once and was asked for, and that the answers to
/// clients stay true. Returns the violations.
#[must_use]
pub fn check_heads(tables: &Tables, intents: &[Intent]) -> Vec<String> {
    let mut found = Vec::new();
    for (key, hot) in &tables.hot {
        if let Some(problem) = check_both(hot, tables.history.get(key)).filter(|_| is_of_head(&key.0)) {
            found.push(format!("the head {key:?} {problem}"));
        }
    }
    let amounts = intents
        .iter()
        .enumerate()
        .flat_map(|(place, intent)| intent.amounts().into_iter().zip(std::iter::repeat(place)));
    let owners: BTreeMap<u64, usize> = amounts.collect();
    let mut heads_of: BTreeMap<usize, Vec<(&Key, &Value)>> = BTreeMap::new();
    for (key, head) in tables.heads() {
        let amount = number(head, "amountMinor");
        match owners.get(&amount) {
            Some(owner) => heads_of.entry(*owner).or_default().push((key, head)),
            None => found.push(format!("nobody asked for a payment of {amount}")),
        }
    }
    for (place, intent) in intents.iter().enumerate() {
        let heads = heads_of.remove(&place).unwrap_or_default();
        if let Some(problem) = check_intent(intent, &heads, tables) {
            found.push(format!("payment {} {problem}", intent.amount));
        }
    }
    let owner = |amount| owners.get(&amount).and_then(|place| intents.get(*place));
    found.extend(tables.history.iter().filter_map(|(key, details)| amended::check_details(key, details, owner)));
    found
}

fn check_intent(intent: &Intent, heads: &[(&Key, &Value)], tables: &Tables) -> Option<String> {
    if heads.len() > 1 {
        return Some(format!("is there {} times", heads.len()));
    }
    let Some(((pk, sk), head)) = heads.first() else {
        return intent.accepted.as_ref().map(|id| format!("was accepted as {id} and is lost"));
    };
    if intent.refused && intent.accepted.is_none() {
        return Some("was refused and is there".to_owned());
    }
    if *pk != format!("ACCT#{}", intent.account) {
        return Some(format!("is of the account {} and lies in {pk}", intent.account));
    }
    if intent.slot_at().is_some_and(|slot_at| sk.strip_prefix(&slot_at).is_none_or(|rest| !rest.starts_with('#'))) {
        return Some(format!("is to be made at {} and is {sk}", intent.scheduled_for));
    }
    let Some(wanted) = intent.in_force(id_of(sk), text(head, "details")) else {
        return Some(format!("was amended as nobody asked for: {head}"));
    };
    let status = text(head, "status");
    let due = wanted.due_date().zip(wanted.due_at());
    if due.is_some_and(|(date, at)| text(head, "due") != format!("{status}#{date}#{at}#{}", id_of(sk))) {
        return Some(format!("is to be made at {} and is due at {}", wanted.scheduled_for, text(head, "due")));
    }
    if !amended::has_content(head, &wanted) {
        return Some(format!("is there as {head}"));
    }
    if let Some(problem) = amended::check_chain(intent, id_of(sk), head, tables) {
        return Some(problem);
    }
    if intent.cancelled && status != "CANCELLED" {
        return Some(format!("was told to be cancelled and is {status}"));
    }
    let id = intent.accepted.as_ref()?;
    if id_of(sk) != id {
        return Some(format!("was accepted as {id} and is {sk}"));
    }
    let details = tables.history.get(&(format!("PAY#{id}"), "DETAILS".to_owned()));
    let right = details.is_some_and(|details| {
        number(details, "amountMinor") == intent.amount && text(details, "payeeAccountId") == intent.payee
    });
    (!right).then(|| format!("has the details {details:?}"))
}
