//! Statuses, and the one function that says which may follow which.
//!
//! ```text
//! SCHEDULED ──sweep──▶ PENDING ──settle──▶ PROCESSED (transaction id)
//!     │                   └─────settle──▶ FAILED (reason)
//!     └──cancel──▶ CANCELLED
//! ```

use std::fmt;
use std::str::FromStr;

use crate::settlement::{FailureReason, Outcome, TransactionId};
use crate::{Actor, UtcSecond};

/// Where a payment is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Put in, not yet due or not yet swept.
    Scheduled,
    /// Fallen due and claimed for the transaction service.
    Pending,
    /// The transaction service moved the money.
    Processed,
    /// The transaction service refused.
    Failed,
    /// Taken back before it fell due.
    Cancelled,
}

/// Why a text is not a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a status is one of SCHEDULED, PENDING, PROCESSED, FAILED, CANCELLED")]
pub struct StatusError;

impl Status {
    /// Every status, in the order of a payment's life.
    pub const ALL: [Self; 5] = [Self::Scheduled, Self::Pending, Self::Processed, Self::Failed, Self::Cancelled];

    /// The status's name on the wire and in keys.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "SCHEDULED",
            Self::Pending => "PENDING",
            Self::Processed => "PROCESSED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// Whether nothing can follow.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Processed | Self::Failed | Self::Cancelled)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Status {
    type Err = StatusError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or(StatusError)
    }
}

/// A status with what belongs to it and to no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// See [`Status::Scheduled`].
    Scheduled,
    /// See [`Status::Pending`].
    Pending,
    /// See [`Status::Processed`].
    Processed(TransactionId),
    /// See [`Status::Failed`].
    Failed(FailureReason),
    /// See [`Status::Cancelled`].
    Cancelled,
}

impl State {
    /// The bare status.
    #[must_use]
    pub fn status(&self) -> Status {
        match self {
            Self::Scheduled => Status::Scheduled,
            Self::Pending => Status::Pending,
            Self::Processed(_) => Status::Processed,
            Self::Failed(_) => Status::Failed,
            Self::Cancelled => Status::Cancelled,
        }
    }
}

impl From<Outcome> for State {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Processed(transaction_id) => Self::Processed(transaction_id),
            Outcome::Failed(reason) => Self::Failed(reason),
        }
    }
}

/// What can happen to a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It has fallen due.
    Sweep,
    /// The transaction service reports.
    Settle(Outcome),
    /// Its owner takes it back.
    Cancel,
}

/// What an event does to a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It moves on to this state.
    Move(State),
    /// It is already where the event would take it: a repetition, and a success.
    Already,
    /// It is not yet where the event can apply.
    TooEarly,
    /// It has moved past the event, which changes nothing.
    TooLate,
    /// It is settled, and differently: nothing changes, and somebody has to look.
    Conflict,
}

/// Decides what `event` does to a payment in `state`. Total: every state meets every event.
#[must_use]
pub fn decide(state: &State, event: &Event) -> Decision {
    match (state, event) {
        (State::Scheduled, Event::Sweep) => Decision::Move(State::Pending),
        (State::Scheduled, Event::Cancel) => Decision::Move(State::Cancelled),
        (State::Scheduled, Event::Settle(_)) => Decision::TooEarly,
        (State::Pending, Event::Settle(outcome)) => Decision::Move(outcome.clone().into()),
        (State::Pending, Event::Sweep) | (State::Cancelled, Event::Cancel) => Decision::Already,
        (State::Processed(known), Event::Settle(Outcome::Processed(told))) if known == told => Decision::Already,
        (State::Failed(known), Event::Settle(Outcome::Failed(told))) if known == told => Decision::Already,
        (State::Processed(_) | State::Failed(_) | State::Cancelled, Event::Settle(_)) => Decision::Conflict,
        (State::Pending | State::Processed(_) | State::Failed(_), Event::Cancel)
        | (State::Processed(_) | State::Failed(_) | State::Cancelled, Event::Sweep) => Decision::TooLate,
    }
}

/// One step of a payment's life, as it is to be written: from a status at a version to a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The status it leaves.
    pub from: Status,
    /// The version it leaves; the step makes it one more.
    pub from_version: u32,
    /// The state it enters.
    pub to: State,
    /// When.
    pub at: UtcSecond,
    /// By whom.
    pub by: Actor,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processed(id: &str) -> Outcome {
        id.parse().map_or_else(|_| Outcome::Failed(FailureReason::cut(id)), Outcome::Processed)
    }

    #[test]
    fn every_state_meets_every_event() {
        use Decision::{Already, Conflict, TooEarly, TooLate};
        let failed = |why| Outcome::Failed(FailureReason::cut(why));
        let events = [
            Event::Sweep,
            Event::Cancel,
            Event::Settle(processed("T1")),
            Event::Settle(processed("T2")),
            Event::Settle(failed("no funds")),
        ];
        let to = |outcome: Outcome| Decision::Move(outcome.into());
        let table = [
            (failed("no funds").into(), [TooLate, TooLate, Conflict, Conflict, Already]),
            (
                State::Scheduled,
                [Decision::Move(State::Pending), Decision::Move(State::Cancelled), TooEarly, TooEarly, TooEarly],
            ),
            (State::Pending, [Already, TooLate, to(processed("T1")), to(processed("T2")), to(failed("no funds"))]),
            (processed("T1").into(), [TooLate, TooLate, Already, Conflict, Conflict]),
            (failed("closed").into(), [TooLate, TooLate, Conflict, Conflict, Conflict]),
            (State::Cancelled, [TooLate, Already, Conflict, Conflict, Conflict]),
        ];
        for (state, row) in table {
            for (event, want) in events.iter().zip(row) {
                assert_eq!(decide(&state, event), want, "{state:?} × {event:?}");
            }
        }
    }

    #[test]
    fn terminal_states_never_move() {
        for state in [processed("T").into(), State::Failed(FailureReason::cut("x")), State::Cancelled] {
            assert!(state.status().is_terminal());
            for event in [Event::Sweep, Event::Cancel, Event::Settle(processed("U"))] {
                assert!(!matches!(decide(&state, &event), Decision::Move(_)), "{state:?} × {event:?}");
            }
        }
    }

    #[test]
    fn names_are_read_back() {
        for status in Status::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
        assert_eq!("scheduled".parse::<Status>(), Err(StatusError));
    }
}
