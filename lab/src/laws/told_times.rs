//! The law of times: the time that a head gives for its version is the time of the change.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::facts::heads::{is_settled, last_change};
use crate::time::CLOCKS_AGREE;
use payments_machine::layers::attributes::{number, text};

/// The longest time between a function's reading of its clock and its write.
const LONGEST_WRITE: TimeDelta = TimeDelta::minutes(2);

/// The time that a head gives for its version: the last amendment's while the payment is SCHEDULED, and else the last
/// status change's. These times are not compared, because their clocks can differ.
pub(crate) fn told_at(head: &Value) -> Option<DateTime<Utc>> {
    let amended = text(&head["amended"]["M"], "at").parse().ok();
    amended.filter(|_| text(head, "status") == "SCHEDULED").or_else(|| last_change(head))
}

/// Checks the time of a head's new version in the hot table. A new head is not checked: its time is that of its details,
/// which a failed create may have written long ago. A settled head is checked in the long-term table, where it was put
/// first. Returns the violation, if there is one.
pub(crate) fn check_time(before: &Value, after: &Value, at: DateTime<Utc>) -> Option<String> {
    let is_copy = is_settled(text(after, "status"));
    let is_new = number(before, "version") < number(after, "version") && !is_copy;
    if is_new { check_told(after, at) } else { None }
}

/// Checks that a head that was written at an instant gives this instant as the time of its version. Returns the violation,
/// if there is one.
pub(crate) fn check_told(head: &Value, at: DateTime<Utc>) -> Option<String> {
    let told = told_at(head);
    let is_now = told.is_some_and(|told| at - LONGEST_WRITE <= told && told <= at + CLOCKS_AGREE);
    (!is_now).then(|| format!("was changed at {at}, and says {told:?}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::heads::made;

    const AT: &str = "2026-03-12T08:00:00Z";

    #[test]
    fn a_version_says_when_it_was_made() {
        let at = AT.parse::<DateTime<Utc>>().unwrap();
        let before = made("SCHEDULED", 1, "2026-03-11T08:00:00Z");
        let after = made("PENDING", 2, AT);
        for (seconds, is_right) in [(-4, false), (-3, true), (0, true), (120, true), (121, false)] {
            let problem = check_time(&before, &after, at + TimeDelta::seconds(seconds));
            assert_eq!(problem.is_none(), is_right, "{seconds}: {problem:?}");
        }
        let later = at + TimeDelta::days(1);
        assert_eq!(check_time(&after, &after, later), None);
        assert!(check_time(&after, &made("CANCELLED", 3, AT), later).is_some());
        assert_eq!(check_time(&after, &made("PROCESSED", 3, AT), later), None);
        let mut amended = made("SCHEDULED", 2, "2026-03-11T08:00:00Z");
        amended["amended"] = json!({ "M": { "at": { "S": AT } } });
        assert_eq!(check_time(&before, &amended, at), None);
    }
}
