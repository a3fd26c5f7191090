//! The redrive schedule: computes when a pending payment's request is sent again.

use chrono::TimeDelta;
use payments_model::UtcSecond;

/// The wait before the first redrive. It doubles with each further one.
const FIRST_REDRIVE: TimeDelta = TimeDelta::hours(1);

/// What to do with a pending payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// Wait for a result of the last dispatch attempt.
    Wait,
    /// Redrive it.
    Redrive,
    /// Leave it to an operator: no dispatch attempts are left, and the wait after the last one is over.
    Stuck,
}

/// Returns what to do with a payment that has been pending since `since` and was dispatched `attempt` times.
/// Attempt n + 1 is due (2^n - 1) hours after `since`: after 1, 3, 7, 15 hours.
pub(crate) fn next_step(since: UtcSecond, attempt: u32, now: UtcSecond, max_attempts: u32) -> NextStep {
    let doubled = 2_i32.saturating_pow(attempt.min(16)) - 1;
    if now < since.saturating_add(FIRST_REDRIVE * doubled) {
        NextStep::Wait
    } else if attempt < max_attempts {
        NextStep::Redrive
    } else {
        NextStep::Stuck
    }
}

/// Returns the latest due time of payments that can be redriven now: none is pending before it is due.
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
            ("2026-11-20T10:00:00Z", 1, Redrive),
            ("2026-11-20T11:59:59Z", 2, Wait),
            ("2026-11-20T12:00:00Z", 2, Redrive),
            ("2026-11-20T15:59:59Z", 3, Wait),
            ("2026-11-20T16:00:00Z", 3, Stuck),
            ("2090-01-01T00:00:00Z", u32::MAX, Stuck),
        ] {
            assert_eq!(next_step(since, attempt, now.parse().unwrap(), 3), want, "{now} after {attempt}");
        }
    }
}
