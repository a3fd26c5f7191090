//! The holds of which an alarm tells once more: a further one, and each after another twelve hours.
//!
//! The alarms of the first hold stay on until the last one ends, so they tell of no other. Sweeps are counted, and not seconds, so a
//! sweep that begins a little later tells neither twice nor never.

use payments_model::UtcSecond;

use crate::function::SWEEP_EVERY;

/// The sweeps of twelve hours.
const AGAIN: i64 = 12 * 3_600 / SWEEP_EVERY.num_seconds();

/// The sweeps of the hour after which HeldForLong tells of a stop or an operator's hold.
const LONG: i64 = 3_600 / SWEEP_EVERY.num_seconds();

/// The sweeps in a row that tell of a hold, because one may fail: one time for the alarm.
const TELL: i64 = 2;

/// Counts the holds to tell of in the sweep that began at `now`, by the times since which they last: those of limits, and those of
/// the switch with the stop.
pub(crate) fn to_tell(now: UtcSecond, of_limits: &[UtcSecond], of_switch: &[UtcSecond]) -> u64 {
    further(now, of_limits, 0) + further(now, of_switch, LONG)
}

/// Counts those of one alarm, which tells of its first hold after so many sweeps.
fn further(now: UtcSecond, since: &[UtcSecond], tells_after: i64) -> u64 {
    let sweeps = |at: UtcSecond| at.as_chrono().timestamp().div_euclid(SWEEP_EVERY.num_seconds());
    let ages: Vec<i64> = since.iter().map(|since| sweeps(now) - sweeps(*since) - tells_after).collect();
    let oldest = ages.iter().max().copied().unwrap_or(0);
    let is_told = |age: &&i64| **age >= 0 && **age % AGAIN < TELL && (**age >= AGAIN || **age < oldest);
    u64::try_from(ages.iter().filter(is_told).count()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: &str) -> UtcSecond {
        format!("2026-11-{time}Z").parse().unwrap()
    }

    #[test]
    fn a_further_hold_and_another_twelve_hours_are_told_by_two_sweeps() {
        let first = at("20T01:00:07");
        for (now, second, told) in [
            // The alarm of the first hold tells of it.
            ("20T01:00:00", None, 0),
            ("20T01:05:00", None, 0),
            ("20T01:05:00", Some("20T01:05:30"), 1),
            ("20T01:10:00", Some("20T01:05:30"), 1),
            ("20T01:15:00", Some("20T01:05:30"), 0),
            ("20T12:55:03", None, 0),
            // Sweeps begin a few seconds earlier or later.
            ("20T13:00:00", None, 1),
            ("20T13:05:59", None, 1),
            ("20T13:10:00", None, 0),
            ("21T01:00:01", None, 1),
            ("21T01:00:01", Some("20T13:00:00"), 2),
        ] {
            let holds: Vec<UtcSecond> = [Some(first), second.map(at)].into_iter().flatten().collect();
            assert_eq!(to_tell(at(now), &holds, &[]), told, "{now}, {second:?}");
            // HeldForLong tells of an operator's hold an hour later.
            let later = at(now).saturating_add(chrono::TimeDelta::hours(1));
            assert_eq!(to_tell(later, &[], &holds), told, "{now}, {second:?}");
        }
        // A hold by an operator and one by a limit have different alarms.
        assert_eq!(to_tell(at("20T02:00:00"), &[at("20T02:00:00")], &[first]), 0);
    }
}
