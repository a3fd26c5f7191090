//! The faults of one invocation of the aggregator.

use payments_tests::{CrashPoint, Way};
use proptest::prelude::*;

use crate::kit::fault_injector::FaultInjector;
use crate::kit::fault_plan::{
    CANCELLED_BY_CONDITION, CANCELLED_BY_CONFLICT, KILLED_AFTER, KILLED_BEFORE, REPLY_LOST, REPLY_LOST_ONCE, Run,
    THROTTLED_FROM_HERE_ON, run_to,
};

/// The ways in which a call of the aggregator fails.
pub(crate) const WAYS: [Way; 7] = [
    KILLED_BEFORE,
    KILLED_AFTER,
    REPLY_LOST_ONCE,
    REPLY_LOST,
    THROTTLED_FROM_HERE_ON,
    CANCELLED_BY_CONFLICT,
    // As if the checkpoint had moved.
    CANCELLED_BY_CONDITION,
];

/// A fault of one invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// One of the invocation's calls fails.
    Call(CrashPoint),
    /// The invocation succeeds and Lambda does not learn it: it delivers the batch again.
    AnswerLost,
}

impl Fault {
    /// A fault every other time.
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let point = (0..3_usize, prop::sample::select(WAYS.to_vec())).prop_map(|(call, way)| CrashPoint { call, way });
        prop_oneof![4 => Just(Self::None), 4 => point.prop_map(Self::Call), 1 => Just(Self::AnswerLost)]
    }

    /// Runs a handler with this fault; a lost answer is the handler's to lose.
    pub(crate) async fn run<T>(self, faults: &FaultInjector, handler: impl Future<Output = T>) -> Run<T> {
        match self {
            Self::Call(point) => run_to(point, faults, handler).await,
            _ => Run { answer: Some(handler.await), reached: false, failed: self == Self::AnswerLost },
        }
    }
}
