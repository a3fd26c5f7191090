//! A stop: from five seconds later on nothing is claimed, redriven or sent.

use chrono::{DateTime, TimeDelta, Utc};
use payments_machine::Call;
use payments_machine::layers::attributes::text;
use serde_json::Value;

use crate::facts::heads::is_of_head;

/// The table of the switch.
pub(crate) const HISTORY: &str = "payment-history";

/// The time after a stop within which the last call leaves.
const WITHIN: TimeDelta = TimeDelta::seconds(5);

/// Whether a call claims, redrives or sends.
pub(crate) fn is_act(function: &str, call: &Call) -> bool {
    match function {
        "daily-due-sweeper" => call.operation == "UpdateItem" && is_of_head(text(&call.input()["Key"], "pk")),
        "dispatch" => call.operation == "SendMessageBatch",
        _ => false,
    }
}

/// Returns the violation if such a call leaves now, while the switch is this item.
pub(crate) fn check_departure(switch: &Value, now: DateTime<Utc>) -> Option<String> {
    let stopped = switch["stopped"]["BOOL"].as_bool() == Some(true);
    let at: DateTime<Utc> = text(switch, "at").parse().ok()?;
    let late = now - at;
    (stopped && late > WITHIN).then(|| format!("a claim or a request left {} ms after a stop", late.num_milliseconds()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_may_leave_until_five_seconds_after_a_stop() {
        for (stopped, now, is_late) in [
            (true, "2026-03-12T09:00:05Z", false),
            (true, "2026-03-12T09:00:05.001Z", true),
            (false, "2026-03-12T10:00:00Z", false),
        ] {
            let switch = json!({ "stopped": { "BOOL": stopped }, "at": { "S": "2026-03-12T09:00:00Z" } });
            assert_eq!(check_departure(&switch, now.parse().unwrap()).is_some(), is_late, "{now}");
        }
        assert_eq!(check_departure(&Value::Null, "2026-03-12T10:00:00Z".parse().unwrap()), None);
    }
}
