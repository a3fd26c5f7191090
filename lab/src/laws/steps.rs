//! Each step of a payment, beside what it changes: somebody asked for it, and it says when it was made.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use payments_machine::layers::attributes::{number, text};
use serde_json::Value;

use super::{CLOCKS_AGREE, last_change};
use crate::facts::heads::{id_of, is_settled};

/// How long before its write a function has looked at its clock at most.
const LONGEST_WRITE: TimeDelta = TimeDelta::minutes(2);

/// The fewest days for which a segment of the log is kept: a reader may come after 35 days, and clocks differ.
const KEPT_FOR_DAYS: i64 = 36;

/// When a head got its version, as it says. The clocks of an amendment and of the change before it differ, so neither time need be the later one.
pub(crate) fn told_at(head: &Value) -> Option<DateTime<Utc>> {
    let amended = text(&head["amended"]["M"], "at").parse().ok();
    amended.filter(|_| text(head, "status") == "SCHEDULED").or_else(|| last_change(head))
}

/// A payment is cancelled only if a client has asked for it.
pub(crate) fn check_cancel(before: &Value, after: &Value, asked: &BTreeSet<String>) -> Option<String> {
    let is_new = text(before, "status") != "CANCELLED" && text(after, "status") == "CANCELLED";
    let is_asked = asked.contains(id_of(text(after, "sk")));
    (is_new && !is_asked).then(|| "was cancelled, and nobody had asked for that".to_owned())
}

/// A new version says when it was made. A head that begins has the time of its details, which a create that failed may have left long ago. A
/// settlement was made when the long-term table had it, which is looked at there.
pub(crate) fn check_time(before: &Value, after: &Value, at: DateTime<Utc>) -> Option<String> {
    let is_copy = is_settled(text(after, "status"));
    let is_new = number(before, "version") < number(after, "version") && !is_copy;
    if is_new { check_told(after, at) } else { None }
}

/// What is written at an instant says that it was made then.
pub(crate) fn check_told(head: &Value, at: DateTime<Utc>) -> Option<String> {
    let told = told_at(head);
    let is_now = told.is_some_and(|told| at - LONGEST_WRITE <= told && told <= at + CLOCKS_AGREE);
    (!is_now).then(|| format!("was changed at {at}, and says {told:?}"))
}

/// A batch has each dispatch attempt of a payment once. Returns what is there again.
pub(crate) fn check_batch(operation: &str, input: &Value) -> Option<String> {
    let entries = input["Entries"].as_array().filter(|_| operation == "SendMessageBatch")?;
    let mut seen = BTreeSet::new();
    entries.iter().find_map(|entry| {
        let request: Value = serde_json::from_str(entry["MessageBody"].as_str()?).ok()?;
        let attempt = format!("{} at {}", request["paymentId"], request["dispatchAttempt"]);
        (!seen.insert(attempt.clone())).then(|| format!("{attempt} is twice in a batch"))
    })
}

/// A segment of the log is kept for as long as readers may come.
pub(crate) fn check_segment(item: &Value) -> Option<String> {
    let written: DateTime<Utc> = text(item, "at").parse().ok()?;
    let kept_until = i64::try_from(number(item, "expires_at")).unwrap_or(0);
    let is_kept = kept_until - written.timestamp() >= KEPT_FOR_DAYS * 86_400;
    (!is_kept).then(|| format!("the segment {} of {written} expires at {kept_until}", text(item, "sk")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const AT: &str = "2026-03-12T08:00:00Z";

    fn head(status: &str, version: u32, at: &str) -> Value {
        let entry = json!({ "M": { "status": { "S": status }, "at": { "S": at } } });
        json!({ "sk": { "S": "2026-03-12T08:00:00Z#7" }, "status": { "S": status }, "version": { "N": version.to_string() },
            "trail": { "L": [entry] } })
    }

    #[test]
    fn nobody_is_cancelled_who_did_not_ask() {
        let (before, after) = (head("SCHEDULED", 1, AT), head("CANCELLED", 2, AT));
        assert!(check_cancel(&before, &after, &BTreeSet::new()).is_some());
        assert_eq!(check_cancel(&before, &after, &["7".to_owned()].into()), None);
        assert_eq!(check_cancel(&after, &after, &BTreeSet::new()), None);
        assert_eq!(check_cancel(&before, &head("PENDING", 2, AT), &BTreeSet::new()), None);
    }

    #[test]
    fn a_version_says_when_it_was_made() {
        let at = AT.parse::<DateTime<Utc>>().unwrap();
        let before = head("SCHEDULED", 1, "2026-03-11T08:00:00Z");
        let after = head("PENDING", 2, AT);
        for (seconds, is_right) in [(-4, false), (-3, true), (0, true), (120, true), (121, false)] {
            let problem = check_time(&before, &after, at + TimeDelta::seconds(seconds));
            assert_eq!(problem.is_none(), is_right, "{seconds}: {problem:?}");
        }
        let later = at + TimeDelta::days(1);
        assert_eq!(check_time(&after, &after, later), None);
        assert!(check_time(&after, &head("CANCELLED", 3, AT), later).is_some());
        assert_eq!(check_time(&after, &head("PROCESSED", 3, AT), later), None);
        let mut amended = head("SCHEDULED", 2, "2026-03-11T08:00:00Z");
        amended["amended"] = json!({ "M": { "at": { "S": AT } } });
        assert_eq!(check_time(&before, &amended, at), None);
    }

    #[test]
    fn a_batch_that_repeats_an_attempt_is_seen() {
        let entry = |id: &str, attempt: u32| json!({ "MessageBody": json!({ "paymentId": id, "dispatchAttempt": attempt }).to_string() });
        let found = |entries: &[Value]| check_batch("SendMessageBatch", &json!({ "Entries": entries }));
        assert_eq!(found(&[entry("7", 1), entry("7", 2), entry("8", 1)]), None);
        assert!(found(&[entry("7", 1), entry("8", 1), entry("7", 1)]).is_some());
    }

    #[test]
    fn a_segment_that_expires_too_early_is_seen() {
        let written = AT.parse::<DateTime<Utc>>().unwrap();
        let expiring = |days: i64| {
            let at = (written + TimeDelta::days(days)).timestamp().to_string();
            check_segment(&json!({ "sk": { "S": "1" }, "at": { "S": AT }, "expires_at": { "N": at } }))
        };
        assert_eq!((expiring(36), expiring(35).is_some()), (None, true));
    }
}
