//! How long an invocation may still work before it has to stop by itself.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::Clock;

/// The time kept for what is under way and for the answer: one operation's timeout (5 s) and a
/// second for the rest, but never more than half of all there is.
const MARGIN: TimeDelta = TimeDelta::seconds(6);

/// How long an HTTP request takes up new work. The longest chain of calls of one payment is four
/// (details, details, head, head), each at most 5 s, so all is over within 25 s: below the functions'
/// timeout of 28 s, which is below API Gateway's of 30 s.
const HTTP_BUDGET: TimeDelta = TimeDelta::seconds(5);

/// The instant at which an invocation stops taking up new work.
#[derive(Debug, Clone)]
pub struct Deadline {
    clock: Clock,
    stop: DateTime<Utc>,
}

impl Deadline {
    /// The stop before Lambda's own deadline, given in milliseconds since 1970 as the invocation's
    /// context has it.
    #[must_use]
    pub fn before(lambda_deadline_millis: u64, clock: &Clock) -> Self {
        let now = clock.instant();
        let end = i64::try_from(lambda_deadline_millis).ok().and_then(DateTime::from_timestamp_millis).unwrap_or(now);
        let margin = MARGIN.min((end - now) / 2);
        Self { clock: clock.clone(), stop: end - margin }
    }

    /// The stop of an HTTP request: what is begun within five seconds is finished before API
    /// Gateway gives up.
    #[must_use]
    pub fn of_http(clock: &Clock) -> Self {
        Self { clock: clock.clone(), stop: clock.instant() + HTTP_BUDGET }
    }

    /// The same, but `by` earlier, for work that something longer has to follow; never by more than
    /// half of what is left.
    #[must_use]
    pub fn earlier(&self, by: TimeDelta) -> Self {
        let left = self.stop - self.clock.instant();
        Self { clock: self.clock.clone(), stop: self.stop - by.min(left / 2) }
    }

    /// Whether it is time to stop.
    #[must_use]
    pub fn has_come(&self) -> bool {
        self.clock.instant() >= self.stop
    }

    /// Waits, but not past the deadline.
    pub async fn sleep(&self, time: Duration) {
        let left = (self.stop - self.clock.instant()).to_std().unwrap_or_default();
        self.clock.sleep(time.min(left)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_a_margin_but_never_more_than_half() {
        let start = DateTime::from_timestamp_millis(1_000_000).unwrap();
        let clock = Clock::simulated(move || start, |_| {});
        for (millis, stop) in [(120_000, 114_000), (12_000, 6_000), (3_000, 1_500), (0, 0)] {
            let deadline = Deadline::before(1_000_000 + millis, &clock);
            assert_eq!(u64::try_from((deadline.stop - start).num_milliseconds()).unwrap(), stop, "{millis}");
        }
        assert!(Deadline::before(0, &clock).has_come());
        let deadline = Deadline::before(1_126_000, &clock);
        for (by, seconds) in [(30, 90), (60, 60), (100, 60)] {
            let earlier = deadline.earlier(TimeDelta::seconds(by));
            assert_eq!((earlier.stop - start).num_seconds(), seconds, "{by}");
        }
    }
}
