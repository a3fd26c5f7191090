//! The law of events' origins: each event tells a change of its payment, with both statuses and the time.

use std::collections::BTreeMap;

use chrono::SecondsFormat;
use payments_machine::layers::attributes::{number, text};
use payments_machine::layers::lag::Change;
use serde_json::Value;

use crate::facts::heads::{id_of, is_of_head};
use crate::laws::told_times::told_at;

/// Checks the events of versions, without the events of restores and of irregular changes. Returns the violations.
pub(crate) fn check(events: &[Value], changes: &[Change]) -> Vec<String> {
    let mut made: BTreeMap<(&str, u64), Vec<Origin<'_>>> = BTreeMap::new();
    for change in changes.iter().filter(|change| is_of_head(&change.key.0)) {
        let Some(after) = &change.after else { continue };
        let version = number(after, "version");
        if change.before.as_ref().is_none_or(|before| number(before, "version") < version) {
            made.entry((id_of(&change.key.1), version))
                .or_default()
                .push(Origin::from_change(change.before.as_ref(), after));
        }
    }
    let is_of_change = |event: &&Value| {
        let told = ["payment.restored", "payment.irregular"].into_iter().any(|kind| event["type"] == kind);
        !told && event["version"].is_u64()
    };
    let comes_from_none = |event: &&Value| {
        let version = (event["paymentId"].as_str().unwrap_or_default(), event["version"].as_u64().unwrap_or(0));
        made.get(&version).is_none_or(|origins| !origins.iter().any(|origin| origin.is_of(event)))
    };
    let wrong = events.iter().filter(is_of_change).filter(comes_from_none);
    wrong.map(|event| format!("no change of the payment is the event {event}")).collect()
}

/// A change of a head that an event can tell.
struct Origin<'c> {
    from: Option<&'c str>,
    to: &'c str,
    at: String,
}

impl<'c> Origin<'c> {
    fn from_change(before: Option<&'c Value>, after: &'c Value) -> Self {
        let at = told_at(after).map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true)).unwrap_or_default();
        Self { from: before.map(|before| text(before, "status")), to: text(after, "status"), at }
    }

    fn is_of(&self, event: &Value) -> bool {
        let what = if self.from == Some(self.to) { "amended".to_owned() } else { self.to.to_lowercase() };
        event["previousStatus"].as_str() == self.from
            && event["status"] == self.to
            && event["at"] == self.at
            && event["type"] == format!("payment.{what}")
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::json;

    use super::*;
    use crate::facts::heads::made;

    #[test]
    fn an_event_is_a_change_as_it_was_made() {
        let (first, second) =
            (made("SCHEDULED", 1, "2026-03-12T08:00:00Z"), made("PENDING", 2, "2026-03-13T08:00:00Z"));
        let key = ("ACCT#a".to_owned(), "2026-03-13T08:00:00Z#7".to_owned());
        let change = |before: Option<&Value>, after: &Value| Change {
            at: DateTime::UNIX_EPOCH,
            key: key.clone(),
            before: before.cloned(),
            after: Some(after.clone()),
        };
        let changes = [change(None, &first), change(Some(&first), &second)];
        let events = [
            json!({ "type": "payment.scheduled", "paymentId": "7", "version": 1, "status": "SCHEDULED", "at": "2026-03-12T08:00:00Z" }),
            json!({ "type": "payment.pending", "paymentId": "7", "version": 2, "previousStatus": "SCHEDULED", "status": "PENDING",
                "at": "2026-03-13T08:00:00Z" }),
        ];
        assert_eq!(check(&events, &changes), [""; 0]);
        for (field, wrong) in [
            ("type", json!("payment.processed")),
            ("version", json!(3)),
            ("previousStatus", Value::Null),
            ("status", json!("PROCESSED")),
            ("at", json!("2026-03-12T08:00:00Z")),
            ("paymentId", json!("8")),
        ] {
            let mut events = events.clone();
            events[1][field] = wrong;
            assert_eq!(check(&events, &changes).len(), 1, "{field}");
        }
    }
}
