//! Each version says when it was made.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::facts::heads::{is_settled, last_change};
use crate::time::CLOCKS_AGREE;
use payments_machine::layers::attributes::{number, text};

/// The longest time from a function's look at its clock to its write.
const LONGEST_WRITE: TimeDelta = TimeDelta::minutes(2);

/// The time at which a head got its version, by its own word. The clocks of an amendment and of the
/// change before it differ, so neither time need be the later one.
pub(crate) fn told_at(head: &Value) -> Option<DateTime<Utc>> {
    let amended = text(&head["amended"]["M"], "at").parse().ok();
    amended.filter(|_| text(head, "status") == "SCHEDULED").or_else(|| last_change(head))
}

/// A new version has the time of its change. A new head has the time of its details, which a failed
/// create may have left long ago. A settlement has the time of its put into the long-term table,
/// which is checked there.
pub(crate) fn check_time(before: &Value, after: &Value, at: DateTime<Utc>) -> Option<String> {
    let is_copy = is_settled(text(after, "status"));
    let is_new = number(before, "version") < number(after, "version") && !is_copy;
    if is_new { check_told(after, at) } else { None }
}

/// A head that is written at an instant says that instant.
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
