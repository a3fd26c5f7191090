//! The redrive schedule: when a pending payment's request is sent again, by the redrive or by an operator.

use chrono::TimeDelta;

use payments_model::{Head, State, UtcSecond};

/// The wait before the first redrive. The wait doubles with each redrive.
const FIRST_REDRIVE: TimeDelta = TimeDelta::hours(1);

/// The shortest time between two requests of one payment.
pub(crate) const SENT_AGAIN_AFTER: TimeDelta = TimeDelta::hours(1);

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

/// The next request of a pending payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextRequest {
    /// The first redrive from this time on sends it.
    Redrive(UtcSecond),
    /// No redrive sends it, because no dispatch attempts are left. From this time on, an operator can.
    Operator(UtcSecond),
}

/// The requests of a pending payment so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Requests {
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
    pub(crate) fn from_head(head: &Head) -> Option<Self> {
        let attempt = head.dispatch_attempt.filter(|_| head.state == State::Pending)?;
        Some(Self { since: head.updated_at(), attempt, sent_again_at: None })
    }

    /// The end of the wait after the last dispatch attempt: attempt n + 1 is due (2^n - 1) hours after the claim, so after 1, 3, 7, 15
    /// hours, and never less than an hour after the last request.
    fn due_again_at(self) -> UtcSecond {
        let doubled = 2_i32.saturating_pow(self.attempt.min(16)) - 1;
        self.since.saturating_add(FIRST_REDRIVE * doubled).max(self.operable_at())
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
    pub(crate) fn next_step(self, now: UtcSecond, max_attempts: u32) -> NextStep {
        let Self { since, attempt, .. } = self;
        // After an operator's request, which is beyond the last redrive, an hour passes and not the wait of its number.
        let waits_until = if attempt > max_attempts { self.operable_at() } else { self.due_again_at() };
        if now < waits_until {
            NextStep::Wait
        } else if attempt < max_attempts {
            let hours = (now.as_chrono() - since.as_chrono() + FIRST_REDRIVE).num_hours();
            let by_then = u64::try_from(hours).map_or(1, |hours| (hours + 1).ilog2() + 1);
            NextStep::Redrive(by_then.clamp(attempt + 1, max_attempts))
        } else {
            NextStep::Stuck
        }
    }

    /// The next request.
    #[must_use]
    pub(crate) fn next_request(self, max_attempts: u32) -> NextRequest {
        if self.attempt < max_attempts {
            NextRequest::Redrive(self.due_again_at())
        } else {
            NextRequest::Operator(self.operable_at())
        }
    }
}

/// Returns the latest due time of payments that can be redriven now: a payment is pending only after it is due.
#[must_use]
pub(crate) fn redrivable_until(now: UtcSecond) -> UtcSecond {
    now.saturating_add(-FIRST_REDRIVE)
}
