//! The retries of an endpoint: soon at first, then less and less often. After five days, the endpoint is disabled.

use std::time::Duration;

use chrono::TimeDelta;
use payments_model::UtcSecond;
use payments_store::{DisabledBy, Progress};

use crate::round::MAX_EVENTS;

/// The wait after the first failure. Runs begin at least every minute, so the next try comes within about a minute.
const FIRST_WAIT: TimeDelta = TimeDelta::seconds(5);

/// The longest wait. The wait doubles from 5 s to 4 h within about 6 hours. After that, an endpoint
/// gets six tries a day.
const LONGEST_WAIT: TimeDelta = TimeDelta::hours(4);

/// The time after which an endpoint that accepts nothing is disabled: a long weekend, and a day to
/// repair the endpoint. The log keeps events for 35 days.
pub const GIVE_UP_AFTER: TimeDelta = TimeDelta::days(5);

/// The number of events that are sent at once.
pub(crate) fn at_once(progress: &Progress) -> usize {
    usize::from(progress.more_at_once.min(MAX_EVENTS - 1)) + 1
}

/// The progress after all events of a round were accepted. The next round can have twice as many events.
pub(crate) fn succeeded(before: &Progress) -> Progress {
    let more_at_once = before.more_at_once.saturating_mul(2).saturating_add(1).min(MAX_EVENTS - 1);
    let failures = 0;
    let failing_since = None;
    let next_try_at = None;
    let blocking = None;
    Progress { failures, failing_since, next_try_at, more_at_once, blocking, ..before.clone() }
}

/// The progress after a failure at `now`, and whether the endpoint is disabled for failing too long.
/// The next try has one event, so each failure in a row after the first means that nothing was
/// accepted in between. `asked` is the wait that the endpoint asks for.
pub(crate) fn failed(before: &Progress, asked: Option<Duration>, now: UtcSecond) -> (Progress, Option<DisabledBy>) {
    let failures = before.failures.saturating_add(1);
    let since = before.failing_since.unwrap_or(now);
    let asked = asked.and_then(|asked| TimeDelta::from_std(asked).ok()).unwrap_or_default();
    let next_try_at = Some(now.saturating_add(wait_after(failures).max(asked)));
    let gives_up = now >= since.saturating_add(GIVE_UP_AFTER);
    let progress = Progress { failures, failing_since: Some(since), next_try_at, more_at_once: 0, ..before.clone() };
    (progress, gives_up.then_some(DisabledBy::Failing))
}

/// The wait after this many failures in a row.
fn wait_after(failures: u32) -> TimeDelta {
    let doublings = failures.saturating_sub(1).min(16);
    (FIRST_WAIT * (1 << doublings)).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_hours_and_end_after_days() {
        let start: UtcSecond = "2026-11-20T09:00:00Z".parse().unwrap();
        let mut now = start;
        let mut progress = Progress { more_at_once: 7, ..Progress::default() };
        let mut waits = Vec::new();
        let by = loop {
            let disabled;
            (progress, disabled) = failed(&progress, None, now);
            assert_eq!((at_once(&progress), progress.failing_since), (1, Some(start)));
            if let Some(by) = disabled {
                break by;
            }
            let next = progress.next_try_at.unwrap();
            waits.push((next.as_chrono() - now.as_chrono()).num_seconds());
            now = next;
        };
        assert_eq!(waits[..5], [5, 10, 20, 40, 80]);
        assert_eq!((waits[11], waits[12], waits.len()), (10_240, 14_400, 41));
        assert_eq!(by, DisabledBy::Failing);
        assert!(now.as_chrono() - start.as_chrono() >= GIVE_UP_AFTER);
        // An accepted message starts the waits anew.
        let (progress, disabled) = failed(&succeeded(&progress), None, now);
        assert_eq!((progress.failures, progress.failing_since, disabled), (1, Some(now), None));
    }

    #[test]
    fn an_endpoint_that_asks_for_a_longer_wait_gets_it() {
        let now: UtcSecond = "2026-11-20T09:00:00Z".parse().unwrap();
        for (asked, want) in [(None, "09:00:05"), (Some(2), "09:00:05"), (Some(90), "09:01:30")] {
            let (progress, _) = failed(&Progress::default(), asked.map(Duration::from_secs), now);
            assert_eq!(progress.next_try_at.unwrap().to_string(), format!("2026-11-20T{want}Z"));
        }
    }

    #[test]
    fn each_round_that_is_accepted_is_followed_by_one_of_twice_the_size() {
        let mut progress = Progress { failures: 3, ..Progress::default() };
        let sizes: Vec<usize> = (0..12)
            .map(|_| {
                let size = at_once(&progress);
                progress = succeeded(&progress);
                size
            })
            .collect();
        assert_eq!(sizes, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000, 1_000]);
        assert_eq!(progress.failures, 0);
    }
}
