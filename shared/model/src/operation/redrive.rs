//! The redrive schedule: when a pending payment's request is sent again, by the redrive or by an operator.

use chrono::TimeDelta;

use crate::calendar::instant::UtcSecond;
use crate::operation::switch::Switch;
use crate::payment::forms::Head;
use crate::payment::transition::State;

/// The wait before the first redrive. The wait doubles with each redrive.
const FIRST_REDRIVE: TimeDelta = TimeDelta::hours(1);

/// The shortest time between two requests of one payment.
pub const SENT_AGAIN_AFTER: TimeDelta = TimeDelta::hours(1);

/// The next step for a pending payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// Wait for a result of the last dispatch attempt.
    Wait,
    /// Redrive the payment, with this number of the dispatch attempt.
    Redrive(u32),
    /// Leave the payment to an operator: no dispatch attempts are left, and the wait after the last attempt is over.
    Stuck,
}

/// The next request of a pending payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextRequest {
    /// The first redrive from this time on sends it.
    Redrive(UtcSecond),
    /// No redrive sends it, because no dispatch attempts are left. From this time on, an operator can.
    Operator(UtcSecond),
}

/// The requests of a pending payment so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requests {
    /// The time of the payment's claim.
    pub since: UtcSecond,
    /// The number of the last dispatch attempt.
    pub attempt: u32,
    /// The time of the last request after the first.
    pub sent_again_at: Option<UtcSecond>,
}

impl Requests {
    /// The requests of a payment. `None` if the payment is not pending.
    #[must_use]
    pub fn from_head(head: &Head) -> Option<Self> {
        let attempt = head.dispatch_attempt.filter(|_| head.state == State::Pending)?;
        Some(Self { since: head.updated_at(), attempt, sent_again_at: head.sent_again_at })
    }

    /// The end of the wait after the last dispatch attempt: attempt n + 1 is due (2^n - 1) hours after the claim, so after 1, 3, 7, 15
    /// hours, and never less than an hour after the last request. An operator's request has a number that the schedule had not reached:
    /// if the maximum is raised later, the next attempt is due an hour after it, and not after the wait of its number.
    fn due_again_at(self) -> UtcSecond {
        if self.sent_again_at.is_some_and(|at| self.attempt > self.attempt_at(at)) {
            return self.operable_at();
        }
        let doubled = 2_i32.saturating_pow(self.attempt.min(16)) - 1;
        self.since.saturating_add(FIRST_REDRIVE * doubled).max(self.operable_at())
    }

    /// The number of the attempt that the schedule has reached at a time.
    fn attempt_at(self, at: UtcSecond) -> u32 {
        let hours = (at.as_chrono() - self.since.as_chrono() + FIRST_REDRIVE).num_hours();
        u64::try_from(hours).map_or(1, |hours| (hours + 1).ilog2() + 1)
    }

    /// The time from which an operator can send the request again.
    fn operable_at(self) -> UtcSecond {
        self.sent_again_at.unwrap_or(self.since).saturating_add(SENT_AGAIN_AFTER)
    }

    /// The next step at `now`.
    ///
    /// Attempts whose time has passed, or comes within an hour, are skipped. Otherwise, after a pause of the redrives, a payment
    /// would be sent again in each run, while other payments wait for their first redrive.
    #[must_use]
    pub fn next_step(self, now: UtcSecond, max_attempts: u32) -> NextStep {
        let attempt = self.attempt;
        // After an operator's request, which is beyond the last redrive, an hour passes and not the wait of its number.
        let waits_until = if attempt > max_attempts { self.operable_at() } else { self.due_again_at() };
        if now < waits_until {
            NextStep::Wait
        } else if attempt < max_attempts {
            NextStep::Redrive(self.attempt_at(now).clamp(attempt + 1, max_attempts))
        } else {
            NextStep::Stuck
        }
    }

    /// The next step at `now`, if the switch was on. If a stop may have skipped the last dispatch attempt, one more follows an hour after
    /// it. An earlier attempt is followed by the next one as ever.
    #[must_use]
    pub fn next_step_after(self, now: UtcSecond, max_attempts: u32, switch: &Switch) -> NextStep {
        let is_skipped = switch.may_have_skipped(self.sent_again_at.unwrap_or(self.since));
        if is_skipped && self.attempt >= max_attempts && now >= self.operable_at() {
            return NextStep::Redrive(self.attempt.saturating_add(1));
        }
        self.next_step(now, max_attempts)
    }

    /// The next request.
    #[must_use]
    pub fn next_request(self, max_attempts: u32) -> NextRequest {
        if self.attempt < max_attempts {
            NextRequest::Redrive(self.due_again_at())
        } else {
            NextRequest::Operator(self.operable_at())
        }
    }
}

/// Returns the latest due time of payments that can be redriven now: a payment is pending only after it is due.
#[must_use]
pub fn redrivable_until(now: UtcSecond) -> UtcSecond {
    now.saturating_add(-FIRST_REDRIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::Actor;
    use crate::operation::switch::SwitchChange;

    fn next_step(since: UtcSecond, attempt: u32, now: UtcSecond, max_attempts: u32) -> NextStep {
        Requests { since, attempt, sent_again_at: None }.next_step(now, max_attempts)
    }

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

    #[test]
    fn an_operator_sends_once_no_redrive_will_and_at_most_hourly() {
        let at =
            |hours: i64| "2026-11-20T09:00:00Z".parse::<UtcSecond>().unwrap().saturating_add(TimeDelta::hours(hours));
        let requests =
            |attempt, sent_again: Option<i64>| Requests { since: at(0), attempt, sent_again_at: sent_again.map(at) };
        for (attempt, sent_again, max, want) in [
            (1, None, 3, NextRequest::Redrive(at(1))),
            (2, Some(1), 3, NextRequest::Redrive(at(3))),
            // A redrive that came late, after a pause.
            (2, Some(3), 3, NextRequest::Redrive(at(4))),
            (3, Some(3), 3, NextRequest::Operator(at(4))),
            (1, None, 1, NextRequest::Operator(at(1))),
            // An operator sent it, and the maximum was raised since.
            (4, Some(30), 3, NextRequest::Operator(at(31))),
            (4, Some(30), 5, NextRequest::Redrive(at(31))),
            (4, Some(3), 5, NextRequest::Redrive(at(4))),
            (10, Some(266), 12, NextRequest::Redrive(at(267))),
            (8, Some(127), 12, NextRequest::Redrive(at(255))),
        ] {
            assert_eq!(requests(attempt, sent_again).next_request(max), want, "{attempt} {sent_again:?} {max}");
        }
        // The last attempt's wait is long; after an operator's request, the payment is stuck again an hour later.
        for (attempt, sent_again, hours, want) in [
            (3, Some(3), 6, NextStep::Wait),
            (3, Some(3), 7, NextStep::Stuck),
            (4, Some(5), 5, NextStep::Wait),
            (4, Some(5), 6, NextStep::Stuck),
            (9, Some(300), 301, NextStep::Stuck),
        ] {
            assert_eq!(requests(attempt, sent_again).next_step(at(hours), 3), want, "{attempt} at {hours}");
        }
        // Between the 28th and the 29th hour a stop may have skipped it, and for an hour before.
        let resume = SwitchChange { by: Actor::operator("ada"), at: at(29), reason: "it is undone".to_owned() };
        let switch = Switch { stopped_at: Some(at(28)), change: Some(resume), ..Switch::default() };
        for (sent_again, hours, want) in [
            (26, 40, NextStep::Stuck),
            (27, 28, NextStep::Redrive(9)),
            (29, 29, NextStep::Wait),
            (29, 30, NextStep::Redrive(9)),
            (30, 40, NextStep::Stuck),
        ] {
            let step = requests(8, Some(sent_again)).next_step_after(at(hours), 3, &switch);
            assert_eq!(step, want, "sent at {sent_again}");
        }
        // Attempts are left.
        let step = requests(2, Some(29)).next_step_after(at(30), 8, &switch);
        assert_eq!(step, requests(2, Some(29)).next_step(at(30), 8));
        let on = Switch { stopped: true, ..switch };
        assert_eq!(requests(8, Some(29)).next_step_after(at(40), 3, &on), NextStep::Stuck);
        assert_eq!(requests(4, Some(30)).next_step(at(30), 5), NextStep::Wait);
        assert_eq!(requests(4, Some(30)).next_step(at(31), 5), NextStep::Redrive(5));
    }
}
