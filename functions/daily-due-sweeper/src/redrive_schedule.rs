//! The redrive schedule: computes when a pending payment's request is sent again.

use chrono::TimeDelta;
use payments_model::UtcSecond;

/// The wait before the first redrive. The wait doubles with each redrive. No payment is sent twice within an hour.
const FIRST_REDRIVE: TimeDelta = TimeDelta::hours(1);

/// The next step for a pending payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// Wait for a result of the last dispatch attempt.
    Wait,
    /// Redrive the payment, with this number of the dispatch attempt.
    Redrive(u32),
    /// Leave the payment to an operator: no dispatch attempts are left, and the wait after the last attempt is over.
    Stuck,
}

/// Returns the next step for a payment that has been pending since `since`, and whose last dispatch attempt has the number
/// `attempt`. Attempt n + 1 is due (2^n - 1) hours after `since`: after 1, 3, 7, 15 hours.
///
/// Attempts whose time has passed, or comes within an hour, are skipped. Otherwise, after a pause of the redrives, a payment
/// would be sent again in each run, while other payments wait for their first redrive. The step depends only on the
/// number of the attempt, because a head does not say when its request was last sent.
pub(crate) fn next_step(since: UtcSecond, attempt: u32, now: UtcSecond, max_attempts: u32) -> NextStep {
    let doubled = 2_i32.saturating_pow(attempt.min(16)) - 1;
    if now < since.saturating_add(FIRST_REDRIVE * doubled) {
        NextStep::Wait
    } else if attempt < max_attempts {
        let hours = (now.as_chrono() - since.as_chrono() + FIRST_REDRIVE).num_hours();
        let by_then = u64::try_from(hours).map_or(1, |hours| (hours + 1).ilog2() + 1);
        NextStep::Redrive(by_then.clamp(attempt + 1, max_attempts))
    } else {
        NextStep::Stuck
    }
}

/// Returns the latest due time of payments that can be redriven now: a payment is pending only after it is due.
pub(crate) fn redrivable_until(now: UtcSecond) -> UtcSecond {
    now.saturating_add(-FIRST_REDRIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redrives_come_after_one_three_and_seven_hours() {
        use NextStep::{Redrive, Stuck, Wait};
        let since: UtcSecond = "2026-11-20T09:00:00Z".parse().unwrap();
        for (now, attempt, want) in [
            ("2026-11-20T09:59:59Z", 1, Wait),
            ("2026-11-20T10:00:00Z", 1, Redrive(2)),
            ("2026-11-20T11:59:59Z", 2, Wait),
            ("2026-11-20T12:00:00Z", 2, Redrive(3)),
            ("2026-11-20T15:59:59Z", 3, Wait),
            ("2026-11-20T16:00:00Z", 3, Stuck),
            ("2090-01-01T00:00:00Z", u32::MAX, Stuck),
        ] {
            assert_eq!(next_step(since, attempt, now.parse().unwrap(), 3), want, "{now} after {attempt}");
        }
    }

    #[test]
    fn missed_attempts_are_skipped_and_two_are_an_hour_apart() {
        let since: UtcSecond = "2026-11-20T09:00:00Z".parse().unwrap();
        // The attempt of 15 hours, until the next one of 31 hours is less than an hour away.
        for (minutes, attempt, want) in [
            (24 * 60, 1, 5),
            (24 * 60, 4, 5),
            (30 * 60 - 1, 1, 5),
            (30 * 60, 1, 6),
            (119, 1, 2),
            (120, 1, 3),
            (999 * 60, 1, 8),
        ] {
            let now = since.saturating_add(TimeDelta::minutes(minutes));
            assert_eq!(next_step(since, attempt, now, 8), NextStep::Redrive(want), "{minutes} minutes after {attempt}");
        }
        for minutes in 60..255 * 60 {
            let at = |minutes| since.saturating_add(TimeDelta::minutes(minutes));
            if let NextStep::Redrive(next) = next_step(since, 1, at(minutes), 8) {
                let later = next_step(since, next, at(minutes + 59), 8);
                assert!(!matches!(later, NextStep::Redrive(_)), "{later:?} an hour after {minutes} minutes");
            }
        }
    }
}
