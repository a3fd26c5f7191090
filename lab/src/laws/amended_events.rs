//! The law of amendments' events: each amendment has one event with its changes, and later events have its content.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::facts::intent::Intent;

/// Checks events in the order of the log. Returns the violations.
pub(crate) fn check(events: &[Value], intents: &[Intent]) -> Vec<String> {
    let mut owners = BTreeMap::new();
    for intent in intents {
        owners.extend(intent.amounts().into_iter().map(|amount| (amount, intent)));
    }
    // For each payment, the last version and the name of the amendment in force, as far as the log tells. The name is
    // empty before the first amendment.
    let (mut names, mut found) = (BTreeMap::<&str, (u64, String)>::new(), Vec::new());
    for event in events {
        let Some(version) = event["version"].as_u64().filter(|version| *version > 0) else { continue };
        let of = |name: &str| event[name].as_str().unwrap_or_default();
        let owner = event["amountMinor"].as_u64().and_then(|amount| owners.get(&amount));
        let Some(intent) = owner else {
            found.push(format!("nobody asked for the payment of {event}"));
            continue;
        };
        let id = of("paymentId");
        // After a gap in the versions, the amendment in force before this event is unknown.
        let before = names.remove(id).filter(|(last, _)| last + 1 == version).map(|(_, name)| name);
        let now = match event["amendmentId"].as_str() {
            Some(amendment) => Some(format!("{version}#{amendment}")),
            None if version == 1 => Some(String::new()),
            // A restore that brings back a claim does not say which amendment was in force.
            None if of("type") == "payment.restored" => None,
            None => before.clone(),
        };
        let Some(now) = now else { continue };
        let wanted = intent.in_force(id, &now);
        let [before, after] = [before.and_then(|name| intent.in_force(id, &name)), wanted];
        let is_right = after.as_ref().is_some_and(|after| has_content(event, after))
            && tells_amendment(event, before.as_ref().zip(after.as_ref()));
        if !is_right {
            found.push(format!("an event is not as it was wanted: {event}, once {now:?} is in force"));
        }
        names.insert(id, (version, now));
    }
    found
}

fn has_content(event: &Value, wanted: &Intent) -> bool {
    event["amountMinor"] == wanted.amount
        && event["payeeAccountId"] == wanted.payee
        && event["currency"] == wanted.currency
        && event["reference"].as_str() == wanted.reference.as_deref()
        && wanted.due_at().is_none_or(|due_at| event["dueAt"] == due_at)
        && wanted.due_date().is_none_or(|date| event["dueDate"] == date.to_string())
        && event.get("scheduledFor").is_none_or(|scheduled_for| *scheduled_for == wanted.scheduled_for)
}

/// Whether an event has the type and the fields of an amendment exactly if it is an amendment's, and then tells the right
/// changes.
fn tells_amendment(event: &Value, contents: Option<(&Intent, &Intent)>) -> bool {
    let is_amended = event["type"] == "payment.amended";
    if event["type"] == "payment.restored" {
        return true;
    }
    let stays = event["previousStatus"] == "SCHEDULED" && event["status"] == "SCHEDULED";
    if is_amended != stays
        || is_amended != event["changedFields"].is_array()
        || is_amended != event["amendmentId"].is_string()
        || is_amended != event["scheduledFor"].is_string()
    {
        return false;
    }
    let Some((before, after)) = contents.filter(|_| is_amended) else { return true };
    let differences = differences(before, after);
    event["changedFields"] == Value::from(differences.clone())
        && event["previous"] == previous(event, before, &differences)
}

/// The former values of the changed fields, without the data, which a head does not have.
fn previous(event: &Value, before: &Intent, changed: &[&str]) -> Value {
    let mut previous = Map::new();
    for field in changed {
        let value = match *field {
            "payeeAccountId" => Value::from(before.payee.as_str()),
            "amountMinor" => Value::from(before.amount),
            "currency" => Value::from(before.currency),
            "scheduledFor" => Value::from(before.scheduled_for.as_str()),
            // If the calendar moved the payment, the intent does not have the due time.
            "dueAt" => before.due_at().map_or_else(|| event["previous"]["dueAt"].clone(), Value::from),
            "reference" => Value::from(before.reference.clone()),
            _ => Value::Null,
        };
        if !value.is_null() {
            previous.insert((*field).to_owned(), value);
        }
    }
    if previous.is_empty() { Value::Null } else { Value::Object(previous) }
}

/// The fields in which the contents differ, in their order in the API. `dateRule` is left out: no month has date rules.
fn differences(before: &Intent, after: &Intent) -> Vec<&'static str> {
    [
        ("payeeAccountId", before.payee != after.payee),
        ("amountMinor", before.amount != after.amount),
        ("currency", before.currency != after.currency),
        ("scheduledFor", before.scheduled_for != after.scheduled_for),
        ("dueAt", after.is_moved_since(before)),
        ("reference", before.reference != after.reference),
        ("data", before.data != after.data),
    ]
    .into_iter()
    .filter_map(|(name, differs)| differs.then_some(name))
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::intent::Amendment;

    const ID: &str = "8d07bc0c-d17d-5df6-b610-da0d009ea896";

    fn amended() -> (Intent, Value, Value) {
        let mut intent = Intent::new("acc-1".to_owned(), 7, "2026-03-12".to_owned());
        let mut wanted = intent.made_for("2026-03-12T08:00:00Z".to_owned());
        (wanted.amount, wanted.payee) = (8, "tenant".to_owned());
        let amendment =
            Amendment { key: "change".to_owned(), seen: 1, wanted: Box::new(wanted), accepted: false, redates: None };
        let name = amendment.name(ID).unwrap_or_default();
        intent.amendments.push(amendment);
        let first = json!({
            "type": "payment.scheduled", "paymentId": ID, "version": 1, "status": "SCHEDULED", "amountMinor": 7,
            "payeeAccountId": "landlord", "currency": "GBP",
        });
        let second = json!({
            "type": "payment.amended", "paymentId": ID, "version": 2, "previousStatus": "SCHEDULED", "status": "SCHEDULED", "amountMinor": 8,
            "payeeAccountId": "tenant", "currency": "GBP", "dueAt": "2026-03-12T08:00:00Z",
            "scheduledFor": "2026-03-12T08:00:00Z",
            "amendmentId": name.trim_start_matches("2#"),
            "changedFields": ["payeeAccountId", "amountMinor", "scheduledFor"],
            "previous": { "payeeAccountId": "landlord", "amountMinor": 7, "scheduledFor": "2026-03-12" },
        });
        (intent, first, second)
    }

    #[test]
    fn an_amendment_has_one_event_that_says_what_changed() {
        let (intent, first, second) = amended();
        let intents = [intent];
        assert_eq!(check(&[first.clone(), second.clone()], &intents), [""; 0]);
        for (field, wrong) in [
            ("type", json!("payment.scheduled")),
            ("changedFields", json!(["amountMinor"])),
            ("amendmentId", json!("450fcaf8-96dc-50d0-860d-bcb1d27101f1")),
            ("amountMinor", json!(7)),
            ("dueAt", json!("2026-03-12T09:00:00Z")),
            ("scheduledFor", json!("2026-03-12")),
            ("previous", Value::Null),
            ("previous", json!({ "payeeAccountId": "landlord", "amountMinor": 7 })),
            ("previous", json!({ "payeeAccountId": "landlord", "amountMinor": 8, "scheduledFor": "2026-03-12" })),
        ] {
            let mut second = second.clone();
            second[field] = wrong;
            assert_eq!(check(&[first.clone(), second], &intents).len(), 1, "{field}");
        }
    }
}
