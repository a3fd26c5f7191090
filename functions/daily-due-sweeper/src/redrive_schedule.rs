//! When a pending payment is handed over again: the arithmetic of the redrive, without a clock.

use chrono::TimeDelta;
use payments_model::UtcSecond;

/// The wait before a pending payment is handed over again for the first time; it doubles with
/// each time that follows.
const FIRST_REDRIVE: TimeDelta = TimeDelta::hours(1);

/// What to do about a pending payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was handed over recently enough.
    Wait,
    /// It is to be handed over again.
    Redrive,
    /// It was handed over often enough: somebody has to look.
    Stuck,
}

/// Judges a payment that is pending since `since` and was handed over `attempt` times. Attempt
/// n + 1 comes (2^n - 1) hours after the payment became pending: after 1, 3, 7, 15 hours.
pub(crate) fn judge(since: UtcSecond, attempt: u32, now: UtcSecond, max_attempts: u32) -> Verdict {
    let doubled = 2_i32.saturating_pow(attempt.min(16)) - 1;
    if now < since.saturating_add(FIRST_REDRIVE * doubled) {
        Verdict::Wait
    } else if attempt < max_attempts {
        Verdict::Redrive
    } else {
        Verdict::Stuck
    }
}

/// The latest instant at which a payment can have fallen due to be up for its first redrive now:
/// it cannot have been pending before it was due.
pub(crate) fn redrivable_until(now: UtcSecond) -> UtcSecond {
    now.saturating_add(-FIRST_REDRIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redrives_come_after_one_three_and_seven_hours() {
        use Verdict::{Redrive, Stuck, Wait};
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
            assert_eq!(judge(since, attempt, now.parse().unwrap(), 3), want, "{now} after {attempt}");
        }
    }
}
