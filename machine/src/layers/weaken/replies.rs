//! Changes of replies to calls: what a weak function understands.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::super::call::Reply;
use crate::layers::attributes::text;

/// Makes the second person of a decision another one than the first.
pub(super) fn second_is_another(body: &mut Value) -> bool {
    let item = &mut body["Item"];
    let is_decision = item["decision"].is_object();
    if is_decision {
        item["person"] = json!({ "S": "another" });
    }
    is_decision
}

/// Removes an attribute from the items of the hot table that a read of this kind finds.
pub(super) fn forget(name: &str, read: &str, operation: &str, reply: &mut Reply) {
    if operation != read || reply.status != 200 {
        return;
    }
    reply.change(|body| {
        let found = if read == "Query" { &mut body["Items"] } else { &mut body["Responses"]["payments"] };
        let items = found.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut);
        items.filter_map(|item| item.remove(name)).count() > 0
    });
}

/// Says that rejected messages were sent.
pub(super) fn acknowledge(body: &mut Value) -> bool {
    let rejected = body["Failed"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let sent = rejected.into_iter().map(|entry| json!({ "Id": entry["Id"], "MessageId": "0" }));
    body["Successful"].as_array_mut().is_some_and(|successful| {
        successful.extend(sent);
        true
    })
}

/// Shows the settlement that a put met, a minute later.
pub(super) fn settle_anew(body: &mut Value) -> Option<()> {
    let head = body.get_mut("Item")?;
    let at: DateTime<Utc> = text(head, "settledAt").parse().ok()?;
    let later = json!({ "S": (at + TimeDelta::minutes(1)).format("%FT%TZ").to_string() });
    head["trail"]["L"].as_array_mut()?.last_mut()?["M"]["at"] = later.clone();
    head["settledAt"] = later;
    Some(())
}

/// The end of a payee's name that a check of months adds, as if somebody had changed an item.
pub const CHANGED: &str = "-changed";

/// Hides that items were changed.
pub(super) fn hide_changes(operation: &str, reply: &mut Reply) {
    if operation == "Query" && reply.status == 200 {
        reply.change(|body| {
            let mut is_changed = false;
            for item in body["Items"].as_array_mut().into_iter().flatten() {
                let payee = item["payeeAccountId"]["S"].as_str().and_then(|payee| payee.strip_suffix(CHANGED));
                if let Some(payee) = payee.map(str::to_owned) {
                    item["payeeAccountId"]["S"] = payee.into();
                    is_changed = true;
                }
            }
            is_changed
        });
    }
}

/// Empties what a read of heads finds in the hot table.
pub(super) fn find_none_hot(operation: &str, reply: &mut Reply) {
    if operation == "BatchGetItem" && reply.status == 200 {
        reply.change(|body| {
            let found = body["Responses"]["payments"].as_array_mut().map(std::mem::take);
            found.is_some_and(|found| !found.is_empty())
        });
    }
}
