//! The law of kept segments: a segment of the log is kept until no reader may come any more.

use chrono::{DateTime, Utc};
use serde_json::Value;

use payments_machine::layers::attributes::{number, text};

/// The fewest days for which a segment of the log is kept: a reader may come 35 days later, and clocks differ.
const KEPT_FOR_DAYS: i64 = 36;

/// Checks that a segment of the log does not expire too early. Returns the violation, if there is one.
pub(crate) fn check_segment(item: &Value) -> Option<String> {
    let written: DateTime<Utc> = text(item, "at").parse().ok()?;
    let kept_until = i64::try_from(number(item, "expires_at")).unwrap_or(0);
    let is_kept = kept_until - written.timestamp() >= KEPT_FOR_DAYS * 86_400;
    (!is_kept).then(|| format!("the segment {} of {written} expires at {kept_until}", text(item, "sk")))
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use serde_json::json;

    use super::*;

    const AT: &str = "2026-03-12T08:00:00Z";

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
