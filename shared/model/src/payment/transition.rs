//! Statuses, and the transitions between them.
//!
//! ```text
//! SCHEDULED ──sweep──▶ PENDING ──settle──▶ PROCESSED (transaction id)
//!     │                   └─────settle──▶ FAILED (code, reason)
//!     └──cancel──▶ CANCELLED
//! ```

use std::fmt;
use std::str::FromStr;

use crate::actor::Actor;
use crate::calendar::instant::UtcSecond;
use crate::payment::settlement::{Failure, Settlement, TransactionId};

/// A stage of a payment's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Created, and not claimed yet.
    Scheduled,
    /// Due, and claimed for the transaction service.
    Pending,
    /// The transaction service moved the money.
    Processed,
    /// The transaction service rejected the payment.
    Failed,
    /// The payment's owner cancelled the payment before the sweeper claimed it.
    Cancelled,
}

/// A text that is not the name of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a status is one of SCHEDULED, PENDING, PROCESSED, FAILED, CANCELLED")]
pub struct StatusError;

impl Status {
    /// Every status, in the order of a payment's life.
    pub const ALL: [Self; 5] = [Self::Scheduled, Self::Pending, Self::Processed, Self::Failed, Self::Cancelled];

    /// The status's name in the API and in keys.
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

    /// Whether the transaction service has ended the payment: PROCESSED or FAILED.
    #[must_use]
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Processed | Self::Failed)
    }

    /// Whether the payment keeps this status for ever: PROCESSED, FAILED or CANCELLED.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        self.is_settled() || self == Self::Cancelled
    }
}

/// A set of statuses, in the order of a payment's life. An empty list stands for all statuses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statuses(Vec<Status>);

impl Statuses {
    /// Whether this status is in the set.
    #[must_use]
    pub fn has(&self, status: Status) -> bool {
        self.is_all() || self.0.contains(&status)
    }

    /// Whether the set has every status.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Status> for Statuses {
    fn from(status: Status) -> Self {
        Self(vec![status])
    }
}

/// Parses names of statuses with commas between them. The order and repetitions do not matter.
impl FromStr for Statuses {
    type Err = StatusError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named: Vec<Status> = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
        let mut some: Vec<Status> = Status::ALL.into_iter().filter(|status| named.contains(status)).collect();
        if some.len() == Status::ALL.len() {
            some.clear();
        }
        Ok(Self(some))
    }
}

impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|status| status.as_str()).collect();
        f.write_str(&names.join(","))
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

/// A payment's status, with the data that a payment has only in this status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// See [`Status::Scheduled`].
    Scheduled,
    /// See [`Status::Pending`].
    Pending,
    /// See [`Status::Processed`].
    Processed(TransactionId),
    /// See [`Status::Failed`].
    Failed(Failure),
    /// See [`Status::Cancelled`].
    Cancelled,
}

impl State {
    /// The status without its data.
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

impl From<Settlement> for State {
    fn from(settlement: Settlement) -> Self {
        match settlement {
            Settlement::Processed(transaction_id) => Self::Processed(transaction_id),
            Settlement::Failed(failure) => Self::Failed(failure),
        }
    }
}

/// An event in a payment's life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The sweeper claims the payment.
    Sweep,
    /// The transaction service settles the payment.
    Settle(Settlement),
    /// The payment's owner cancels the payment.
    Cancel,
}

/// The reason why an event does not change a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The payment is already in the state to which the event leads: the event has come before. For the
    /// event's sender, this is a success.
    #[error("the payment is already there")]
    Already,
    /// The payment has not yet reached the status in which the event applies.
    #[error("too early for the payment")]
    TooEarly,
    /// The payment has left the status in which the event applies.
    #[error("too late for the payment")]
    TooLate,
    /// The event settles a payment that is settled differently or cancelled. Nothing changes, and an
    /// operator must investigate.
    #[error("the payment ended differently")]
    Conflict,
}

/// Returns the state to which `event` leads a payment in `state`, or the reason why the event changes
/// nothing. Every pair of a state and an event has an arm.
fn decide(state: &State, event: &Event) -> Result<State, Refusal> {
    match (state, event) {
        (State::Scheduled, Event::Sweep) => Ok(State::Pending),
        (State::Scheduled, Event::Cancel) => Ok(State::Cancelled),
        (State::Scheduled, Event::Settle(_)) => Err(Refusal::TooEarly),
        (State::Pending, Event::Settle(settlement)) => Ok(settlement.clone().into()),
        (State::Pending, Event::Sweep) | (State::Cancelled, Event::Cancel) => Err(Refusal::Already),
        (State::Processed(known), Event::Settle(Settlement::Processed(new))) if known == new => Err(Refusal::Already),
        (State::Failed(known), Event::Settle(Settlement::Failed(new))) if known.says_the_same_as(new) => {
            Err(Refusal::Already)
        }
        (State::Processed(_) | State::Failed(_) | State::Cancelled, Event::Settle(_)) => Err(Refusal::Conflict),
        (State::Pending | State::Processed(_) | State::Failed(_), Event::Cancel)
        | (State::Processed(_) | State::Failed(_) | State::Cancelled, Event::Sweep) => Err(Refusal::TooLate),
    }
}

/// The version of a new payment. Each transition and each amendment makes the next version.
pub(crate) const FIRST_VERSION: u32 = 1;

/// One permitted step of a payment's life. Only [`Transition::new`] makes transitions.
///
/// ```
/// # use payments_model::*;
/// # let now = "2026-12-01T00:00:00Z".parse()?;
/// let claim = Transition::new(&State::Scheduled, 1, &Event::Sweep, now, Actor::sweep())?;
/// assert_eq!((claim.from(), claim.to()), (Status::Scheduled, &State::Pending));
///
/// // A claimed payment can no longer be cancelled.
/// let cancel = Transition::new(claim.to(), 2, &Event::Cancel, now, Actor::client("app"));
/// assert_eq!(cancel, Err(Refusal::TooLate));
///
/// // A repeated settlement result changes nothing, and a different result is a conflict.
/// let settle = |id: &str| Event::Settle(Settlement::Processed(id.parse().unwrap()));
/// let processed = Transition::new(claim.to(), 2, &settle("TX-1"), now, Actor::transaction_service())?;
/// let again = |event| Transition::new(processed.to(), 3, &event, now, Actor::transaction_service());
/// assert_eq!(again(settle("TX-1")), Err(Refusal::Already));
/// assert_eq!(again(settle("TX-2")), Err(Refusal::Conflict));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    from: Status,
    version: u32,
    to: State,
    at: UtcSecond,
    by: Actor,
}

impl Transition {
    /// Returns the transition that `event` causes for a payment in `state` at `version`.
    ///
    /// # Errors
    /// A [`Refusal`] if the event does not change the payment.
    pub fn new(state: &State, version: u32, event: &Event, at: UtcSecond, by: Actor) -> Result<Self, Refusal> {
        Ok(Self { from: state.status(), version, to: decide(state, event)?, at, by })
    }

    /// The status before the transition.
    #[must_use]
    pub fn from(&self) -> Status {
        self.from
    }

    /// The version before the transition. The version after the transition is one more.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The state after the transition.
    #[must_use]
    pub fn to(&self) -> &State {
        &self.to
    }

    /// The time of the transition.
    #[must_use]
    pub fn at(&self) -> UtcSecond {
        self.at
    }

    /// The actor that causes the transition.
    #[must_use]
    pub fn by(&self) -> &Actor {
        &self.by
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processed(id: &str) -> Settlement {
        id.parse().map_or_else(|_| Settlement::Failed(Failure::new(None, id)), Settlement::Processed)
    }

    #[test]
    fn every_state_meets_every_event() {
        use Refusal::{Already, Conflict, TooEarly, TooLate};
        let failed = |why| Settlement::Failed(Failure::new(None, why));
        let events = [
            Event::Sweep,
            Event::Cancel,
            Event::Settle(processed("T1")),
            Event::Settle(processed("T2")),
            Event::Settle(failed("no funds")),
        ];
        let to = |settlement: Settlement| Ok(settlement.into());
        let table = [
            (State::Scheduled, [Ok(State::Pending), Ok(State::Cancelled), Err(TooEarly), Err(TooEarly), Err(TooEarly)]),
            (
                State::Pending,
                [Err(Already), Err(TooLate), to(processed("T1")), to(processed("T2")), to(failed("no funds"))],
            ),
            (processed("T1").into(), [TooLate, TooLate, Already, Conflict, Conflict].map(Err)),
            (failed("no funds").into(), [TooLate, TooLate, Conflict, Conflict, Already].map(Err)),
            (failed("closed").into(), [TooLate, TooLate, Conflict, Conflict, Conflict].map(Err)),
            (
                State::Failed(Failure::new(Some("AM04"), "no funds")),
                [TooLate, TooLate, Conflict, Conflict, Conflict].map(Err),
            ),
            (State::Cancelled, [TooLate, Already, Conflict, Conflict, Conflict].map(Err)),
        ];
        let (at, by) = (UtcSecond::MIN, Actor::client("the test"));
        for (state, row) in table {
            for (event, want) in events.iter().zip(row) {
                let made = Transition::new(&state, 7, event, at, by.clone());
                let want = want.map(|to| Transition { from: state.status(), version: 7, to, at, by: by.clone() });
                assert_eq!(made, want, "{state:?} × {event:?}");
            }
        }
    }

    #[test]
    fn terminal_states_never_move() {
        for state in [processed("T").into(), State::Failed(Failure::new(None, "x")), State::Cancelled] {
            assert!(state.status().is_terminal());
            for event in [Event::Sweep, Event::Cancel, Event::Settle(processed("U"))] {
                assert!(decide(&state, &event).is_err(), "{state:?} × {event:?}");
            }
        }
    }

    #[test]
    fn status_names_are_parsed() {
        for status in Status::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
        assert_eq!("scheduled".parse::<Status>(), Err(StatusError));
    }
}
