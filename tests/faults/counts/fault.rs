//! What can befall one invocation of the aggregator.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use crate::fault_injector::FaultInjector;
use payments_local::{Call, Fate};

/// What goes wrong, and with which of the invocation's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing does.
    None,
    /// This call fails.
    Call(usize, Way),
    /// All goes well, and Lambda does not hear of it: it brings the batch again.
    AnswerLost,
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The process is killed before it.
    KilledBefore,
    /// The process is killed after it.
    KilledAfter,
    /// It is done, and its reply is lost once: the SDK tries again.
    ReplyLostOnce,
    /// It is done, and its reply is lost however often the SDK tries.
    ReplyLost,
    /// It is throttled, and so are all that follow.
    Throttled,
    /// If it is a transaction, another one is at its items.
    Conflict,
    /// If it is a transaction, it is cancelled as if the checkpoint had moved.
    Elsewhere,
}

impl Way {
    pub(crate) const ALL: [Self; 7] = [
        Self::KilledBefore,
        Self::KilledAfter,
        Self::ReplyLostOnce,
        Self::ReplyLost,
        Self::Throttled,
        Self::Conflict,
        Self::Elsewhere,
    ];
}

impl Fault {
    /// Something goes wrong every other time.
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let call = (0..3_usize, prop::sample::select(Way::ALL.to_vec())).prop_map(|(call, way)| Self::Call(call, way));
        prop_oneof![4 => Just(Self::None), 4 => call, 1 => Just(Self::AnswerLost)]
    }

    /// Lets it befall the calls from now on; tells whether it has.
    pub(crate) fn inject(self, line: &FaultInjector) -> Arc<AtomicBool> {
        let happened = Arc::new(AtomicBool::new(self == Self::AnswerLost));
        let noted = Arc::clone(&happened);
        line.inject(move |call| {
            let fate = self.fate(call);
            noted.fetch_or(fate != Fate::Pass, Ordering::Relaxed);
            fate
        });
        happened
    }

    fn fate(self, call: &Call) -> Fate {
        let Self::Call(number, way) = self else { return Fate::Pass };
        let (hit, first) = (call.number == number, call.tried == 0);
        let is_transaction = call.operation == "TransactWriteItems";
        match way {
            Way::KilledBefore if hit => Fate::KillBefore,
            Way::KilledAfter if hit => Fate::KillAfter,
            Way::ReplyLostOnce if hit && first => Fate::LoseReply,
            Way::ReplyLost if hit => Fate::LoseReply,
            Way::Throttled if call.number >= number => Fate::Refuse(400, "ThrottlingException"),
            Way::Conflict if hit && is_transaction => Fate::CancelTransaction("TransactionConflict"),
            Way::Elsewhere if hit && is_transaction => Fate::CancelTransaction("ConditionalCheckFailed"),
            _ => Fate::Pass,
        }
    }
}
