//! The law of amendments: each amendment is a step of its own, and its details are kept for good.

use std::collections::BTreeSet;

use payments_machine::layers::attributes::remove;
use payments_machine::layers::attributes::{Key, number, text};
use serde_json::Value;

use crate::facts::closed_dates::REDATE;
use crate::facts::heads::{Tables, due_of, is_settled};
use crate::facts::intent::Intent;

/// The attributes that an amendment can change.
const CHANGING: [&str; 10] = [
    "version",
    "due",
    "moved",
    "details",
    "amended",
    "payeeAccountId",
    "amountMinor",
    "currency",
    "scheduledFor",
    "reference",
];

/// The API's fields among the attributes in `CHANGING`. A head does not show the values of the API's other fields.
const FIELDS: [&str; 5] = ["payeeAccountId", "amountMinor", "currency", "scheduledFor", "reference"];

/// The number of a payment's amendments, by the name of the last one.
pub(crate) fn count(name: &str) -> u64 {
    name.split_once('#').and_then(|(version, _)| version.parse::<u64>().ok()).map_or(0, |version| version - 1)
}

/// Whether a head's attributes `amended` and `moved` fit its details and its due time.
pub(super) fn is_consistent(head: &Value) -> bool {
    let (slot_at, id) = text(head, "sk").split_once('#').unwrap_or_default();
    let due_at = due_of(head).1;
    let moved = if due_at == slot_at { String::new() } else { format!("{due_at}#{id}") };
    let is_amended = !text(head, "details").is_empty();
    text(head, "moved") == moved
        && (is_amended || moved.is_empty())
        && head.get("amended").is_some() == (is_amended && !is_settled(text(head, "status")))
}

/// Whether a head has the wanted content.
pub(super) fn has_content(head: &Value, wanted: &Intent) -> bool {
    let reference = wanted.reference.as_deref().unwrap_or_default();
    let asked = [&wanted.payee, wanted.currency, &wanted.scheduled_for, reference];
    number(head, "amountMinor") == wanted.amount
        && ["payeeAccountId", "currency", "scheduledFor", "reference"].map(|name| text(head, name)) == asked
}

/// Checks the step of an amendment: the payment is SCHEDULED, the amendment makes its next version, and the head names
/// the changed fields. Returns the violation, if there is one.
pub(super) fn check_step(before: &Value, after: &Value, is_consistent: bool) -> Option<String> {
    let rest = |head: &Value| {
        let mut head = head.clone();
        remove(&mut head, &CHANGING);
        head
    };
    let (old, new) = (number(before, "version"), number(after, "version"));
    let told: BTreeSet<&str> = text(&after["amended"]["M"], "changed").split(',').collect();
    let is_told = |name: &&str| told.contains(name) == (before[*name] != after[*name]);
    let legal = text(before, "status") == "SCHEDULED"
        && new == old + 1
        && count(text(after, "details")) == old
        && rest(before) == rest(after)
        && FIELDS.iter().all(is_told)
        && is_consistent;
    (!legal).then(|| format!("was {} v{old} and was amended to v{new}: {after}", text(before, "status")))
}

/// Checks the details of an amendment: somebody asked for their content, whether or not the details were ever in
/// force. Returns the violation, if there is one.
pub(super) fn check_details<'i>(
    (pk, sk): &Key,
    details: &Value,
    owner: impl Fn(u64) -> Option<&'i Intent>,
) -> Option<String> {
    let (id, name) = pk.strip_prefix("PAY#").zip(sk.strip_prefix("DETAILS#"))?;
    let previous = text(details, "previous");
    let wanted = owner(number(details, "amountMinor")).and_then(|intent| match intent.following(id, name, previous) {
        // A redate wrote the details, and the head does not name them, or does not name them yet.
        None if text(details, "createdBy") == REDATE => {
            intent.redated_as(id, (name, previous), (text(details, "dueAt"), text(details, "createdAt")))
        }
        wanted => wanted,
    });
    let is_asked_for = wanted.is_some_and(|wanted| {
        let due = wanted.due_date().zip(wanted.due_at());
        let is_due =
            due.is_none_or(|(date, at)| (text(details, "dueDate"), text(details, "dueAt")) == (&date.to_string(), &at));
        let slot_at = wanted.slot_at();
        has_content(details, &wanted) && is_due && slot_at.is_none_or(|slot_at| text(details, "slotAt") == slot_at)
    });
    (!is_asked_for).then(|| format!("nobody asked for the details {name} of {id}: {details}"))
}

/// Checks a payment's amendments: each has its details and follows the amendment before it, and each amendment that a
/// client was told of is among them. Returns the violation, if there is one.
pub(super) fn check_chain(intent: &Intent, id: &str, head: &Value, tables: &Tables) -> Option<String> {
    let (mut names, mut name) = (BTreeSet::new(), text(head, "details"));
    while !name.is_empty() {
        if intent.lost_details.iter().any(|lost| lost == name) {
            // A restore lost these details, so the earlier amendments are unknown.
            return None;
        }
        let Some(details) = tables.history.get(&(format!("PAY#{id}"), format!("DETAILS#{name}"))) else {
            return Some(format!("was amended, and the details {name} are not there"));
        };
        let previous = text(details, "previous");
        if count(previous) + 1 != count(name) {
            return Some(format!("was amended by {name}, which follows {previous:?}"));
        }
        names.insert(name);
        name = previous;
    }
    let is_lost = |name: &Option<String>| name.as_deref().is_none_or(|name| !names.contains(name));
    let mut told = intent.amendments.iter().filter(|amendment| amendment.accepted);
    let lost = told.find(|amendment| is_lost(&amendment.name(id)))?;
    Some(format!("was told to be amended by {} at version {}, and was not: {names:?}", lost.key, lost.seen + 1))
}
