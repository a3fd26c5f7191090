//! How fast, how patiently, and when to try again: the arithmetic of the sweeper, without a clock.

use std::time::Duration;

use chrono::TimeDelta;
use payments_model::UtcSecond;

/// The wait after a shard's first throttle; it doubles with each one that follows.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);

/// The throttles in a row after which a shard is left for the next tick: 100 ms to 1.6 s of
/// waiting, 3.1 s in all, on top of the SDK's own.
const MAX_THROTTLES: u32 = 5;

/// The wait before a pending payment is handed over again for the first time; it doubles with
/// each time that follows.
const FIRST_REDRIVE: TimeDelta = TimeDelta::hours(1);

/// How long to wait before more claims, after `claimed` of them in `elapsed`; a rate of 0 knows
/// no waiting.
pub(crate) fn wait(claimed: u32, elapsed: Duration, per_second: u32) -> Duration {
    if per_second == 0 {
        return Duration::ZERO;
    }
    let due = Duration::from_millis(u64::from(claimed) * 1_000 / u64::from(per_second));
    due.saturating_sub(elapsed)
}

/// How long to wait after this many throttles in a row, or that it is enough.
pub(crate) fn backoff(throttles: u32) -> Option<Duration> {
    (throttles <= MAX_THROTTLES).then(|| FIRST_BACKOFF * 2_u32.saturating_pow(throttles.saturating_sub(1)))
}

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
    fn claims_keep_their_rate() {
        let ms = Duration::from_millis;
        for (claimed, elapsed, rate, want) in [
            (0, ms(0), 200, ms(0)),
            (16, ms(0), 200, ms(80)),
            (16, ms(50), 200, ms(30)),
            (16, ms(500), 200, ms(0)),
            (1_000, ms(0), 0, ms(0)),
        ] {
            assert_eq!(wait(claimed, elapsed, rate), want, "{claimed} in {elapsed:?} at {rate}");
        }
    }

    #[test]
    fn patience_doubles_and_ends() {
        let waits: Vec<_> = (1..=6).map(backoff).collect();
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(waits, [ms(100), ms(200), ms(400), ms(800), ms(1_600), None]);
    }

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
