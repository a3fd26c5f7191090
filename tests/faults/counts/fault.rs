//! What can go wrong with one invocation of the aggregator.

use proptest::prelude::*;

use crate::fault_injector::FaultInjector;
use crate::fault_plan::{FaultPlan, Run, Way};

/// The ways in which a call of the aggregator fails.
pub(crate) const WAYS: [Way; 7] = [
    Way::KilledBefore,
    Way::KilledAfter,
    Way::ReplyLostOnce,
    Way::ReplyLost,
    Way::ThrottledFromHereOn,
    CONFLICT,
    ELSEWHERE,
];

/// A transaction meets another one on its items.
pub(crate) const CONFLICT: Way = Way::Cancelled("TransactionConflict");

/// A transaction is cancelled as if the checkpoint had moved.
pub(crate) const ELSEWHERE: Way = Way::Cancelled("ConditionalCheckFailed");

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// One of the invocation's calls fails.
    Call(FaultPlan),
    /// The invocation succeeds and Lambda does not learn it: it delivers the batch again.
    AnswerLost,
}

impl Fault {
    /// A fault every other time.
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let plan = (0..3_usize, prop::sample::select(WAYS.to_vec())).prop_map(|(call, way)| FaultPlan { call, way });
        prop_oneof![4 => Just(Self::None), 4 => plan.prop_map(Self::Call), 1 => Just(Self::AnswerLost)]
    }

    /// Runs a handler with this fault; a lost answer is the handler's to lose.
    pub(crate) async fn run<T>(self, faults: &FaultInjector, handler: impl Future<Output = T>) -> Run<T> {
        match self {
            Self::Call(plan) => plan.run(faults, handler).await,
            _ => Run { answer: Some(handler.await), reached: false, failed: self == Self::AnswerLost },
        }
    }
}
