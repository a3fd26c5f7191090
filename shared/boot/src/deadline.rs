//! Deadlines: the instants at which invocations stop starting work, so that they end before Lambda or API Gateway cuts
//! them off.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use payments_store::CALL_TIMEOUT;

use crate::clock::Clock;

/// The most calls after one check of the deadline. The archive may write a copy twice, and the
/// redrive reads a page and its heads.
const CALLS_AFTER_A_LOOK: u32 = 2;

/// The time reserved for work in progress and the answer: two calls of at most 5 s each and 1 s for the rest, but at
/// most half of the time that is left.
pub const MARGIN: Duration = CALL_TIMEOUT.saturating_mul(CALLS_AFTER_A_LOOK).saturating_add(Duration::from_secs(1));

/// Time for which an HTTP request starts work. The calls of one payment come after it, each of at most 5 s.
/// `tests/rules` adds them up: a request ends before the functions' timeout of 28 s and API Gateway's of 30 s.
pub const HTTP_BUDGET: Duration = Duration::from_secs(5);

/// The instant at which an invocation stops starting work.
#[derive(Debug, Clone)]
pub struct Deadline {
    clock: Clock,
    stop: DateTime<Utc>,
}

impl Deadline {
    /// Creates a deadline some time before Lambda's own, which the invocation's context gives in milliseconds since
    /// 1970.
    pub fn before(lambda_deadline_millis: u64, clock: &Clock) -> Self {
        let now = clock.instant();
        let end = end_of(lambda_deadline_millis, now);
        let margin = TimeDelta::from_std(MARGIN).unwrap_or_default().min((end - now) / 2);
        Self { clock: clock.clone(), stop: end - margin }
    }

    /// Creates the deadline of the calls with which a run stores its outcome: each of them ends before Lambda's deadline.
    pub fn for_last_calls(lambda_deadline_millis: u64, clock: &Clock) -> Self {
        let timeout = TimeDelta::from_std(CALL_TIMEOUT).unwrap_or_default();
        Self { clock: clock.clone(), stop: end_of(lambda_deadline_millis, clock.instant()) - timeout }
    }

    /// Creates the deadline of an HTTP request: work that starts within five seconds ends before API Gateway's timeout.
    pub fn for_http(clock: &Clock) -> Self {
        Self::after(clock, TimeDelta::from_std(HTTP_BUDGET).unwrap_or_default())
    }

    /// Creates a deadline that comes after `time`.
    pub fn after(clock: &Clock, time: TimeDelta) -> Self {
        Self { clock: clock.clone(), stop: clock.instant() + time }
    }

    /// Creates a deadline that is `by` earlier, but by at most half of the time left: for work that needs time
    /// after it.
    pub fn earlier(&self, by: TimeDelta) -> Self {
        let left = self.stop - self.clock.instant();
        Self { clock: self.clock.clone(), stop: self.stop - by.min(left / 2) }
    }

    /// Whether the deadline has passed.
    pub fn has_come(&self) -> bool {
        self.comes_within(Duration::ZERO)
    }

    /// Whether the deadline has passed, or passes within `time`.
    pub fn comes_within(&self, time: Duration) -> bool {
        TimeDelta::from_std(time).is_ok_and(|time| self.clock.instant() + time >= self.stop)
    }

    /// Waits for `time`, or until the deadline if that is sooner.
    pub async fn sleep(&self, time: Duration) {
        let left = (self.stop - self.clock.instant()).to_std().unwrap_or_default();
        self.clock.sleep(time.min(left)).await;
    }

    /// Waits until `writes` since `started` are no more than `per_second`, but not past the deadline.
    /// A pace of 0 is unlimited.
    pub async fn keep_rate(&self, writes: u32, started: DateTime<Utc>, per_second: u32) {
        let elapsed = (self.clock.instant() - started).to_std().unwrap_or_default();
        self.sleep(wait_for_rate(writes, elapsed, per_second)).await;
    }
}

/// Lambda's deadline; now, if it is not an instant.
fn end_of(lambda_deadline_millis: u64, now: DateTime<Utc>) -> DateTime<Utc> {
    i64::try_from(lambda_deadline_millis).ok().and_then(DateTime::from_timestamp_millis).unwrap_or(now)
}

fn wait_for_rate(writes: u32, elapsed: Duration, per_second: u32) -> Duration {
    let due = (u64::from(writes) * 1_000).checked_div(u64::from(per_second));
    due.map_or(Duration::ZERO, |due| Duration::from_millis(due).saturating_sub(elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_keeps_a_margin_of_at_most_half_the_time_left() {
        let start = DateTime::from_timestamp_millis(1_000_000).unwrap();
        let clock = Clock::simulated(move || start, |_| {});
        for (millis, stop) in [(120_000, 109_000), (22_000, 11_000), (12_000, 6_000), (3_000, 1_500), (0, 0)] {
            let deadline = Deadline::before(1_000_000 + millis, &clock);
            assert_eq!(u64::try_from((deadline.stop - start).num_milliseconds()).unwrap(), stop, "{millis}");
        }
        assert!(Deadline::before(0, &clock).has_come());
        let deadline = Deadline::before(1_131_000, &clock);
        for (seconds, comes) in [(0, false), (119, false), (120, true), (u64::MAX, false)] {
            assert_eq!(deadline.comes_within(Duration::from_secs(seconds)), comes, "{seconds}");
        }
        let deadline = Deadline::before(1_131_000, &clock);
        for (by, seconds) in [(30, 90), (60, 60), (100, 60)] {
            let earlier = deadline.earlier(TimeDelta::seconds(by));
            assert_eq!((earlier.stop - start).num_seconds(), seconds, "{by}");
        }
    }

    #[test]
    fn a_last_call_needs_its_whole_timeout() {
        let start = DateTime::from_timestamp_millis(1_000_000).unwrap();
        let clock = Clock::simulated(move || start, |_| {});
        for (millis, is_too_late) in [(0, true), (5_000, true), (5_001, false)] {
            assert_eq!(Deadline::for_last_calls(1_000_000 + millis, &clock).has_come(), is_too_late, "{millis}");
        }
    }

    #[test]
    fn writes_keep_their_rate() {
        let ms = Duration::from_millis;
        for (writes, elapsed, rate, want) in [
            (0, ms(0), 200, ms(0)),
            (16, ms(0), 200, ms(80)),
            (16, ms(50), 200, ms(30)),
            (16, ms(500), 200, ms(0)),
            (1_000, ms(0), 0, ms(0)),
        ] {
            assert_eq!(wait_for_rate(writes, elapsed, rate), want, "{writes} in {elapsed:?} at {rate}");
        }
    }
}
