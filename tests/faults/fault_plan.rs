//! Fault plans: which call of a handler fails, and how.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use payments_machine::{Call, Fate};
use payments_tests::note_case;

use crate::fault_injector::FaultInjector;

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// An error before the call, on every try.
    ErrorBefore,
    /// An error before the call's first try: the SDK tries again.
    ErrorBeforeOnce,
    /// The call is done and the reply lost, on every try.
    ReplyLost,
    /// The call is done and the first reply lost: the SDK's second try meets what the first did.
    ReplyLostOnce,
    /// The call is throttled, on every try.
    Throttled,
    /// This call and all that follow are throttled.
    ThrottledFromHereOn,
    /// A write that meets another transaction on its item.
    Conflict,
    /// A transaction that is cancelled for this reason of its first action.
    Cancelled(&'static str),
    /// This transaction and all that follow are cancelled for this reason.
    CancelledFromHereOn(&'static str),
    /// SQS rejects the first message of a batch.
    EntryRefused,
    /// The process is killed before the call.
    KilledBefore,
    /// The process is killed after the call.
    KilledAfter,
}

/// The ways in which any call is made to fail.
pub(crate) const WAYS: [Way; 10] = [
    Way::ErrorBefore,
    Way::ErrorBeforeOnce,
    Way::ReplyLost,
    Way::ReplyLostOnce,
    Way::Throttled,
    Way::ThrottledFromHereOn,
    Way::Conflict,
    Way::EntryRefused,
    Way::KilledBefore,
    Way::KilledAfter,
];

/// The ways in which only transactions fail.
pub(crate) const WAYS_OF_TRANSACTIONS: [Way; 6] = [
    Way::Cancelled("TransactionConflict"),
    Way::Cancelled("ThrottlingError"),
    Way::Cancelled("ConditionalCheckFailed"),
    Way::CancelledFromHereOn("TransactionConflict"),
    Way::CancelledFromHereOn("ThrottlingError"),
    Way::CancelledFromHereOn("ConditionalCheckFailed"),
];

/// One call fails in one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FaultPlan {
    /// The number of the call, from 0.
    pub(crate) call: usize,
    pub(crate) way: Way,
}

/// One run of a handler.
#[derive(Debug)]
pub(crate) struct Run<T> {
    /// The handler's answer; a killed process has none.
    pub(crate) answer: Option<T>,
    /// Whether the handler made the planned call.
    pub(crate) reached: bool,
    /// Whether a call failed.
    pub(crate) failed: bool,
}

impl FaultPlan {
    /// Runs a handler by this plan.
    pub(crate) async fn run<T>(self, faults: &FaultInjector, handler: impl Future<Output = T>) -> Run<T> {
        let failed = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&failed);
        faults.inject(move |call| {
            let fate = self.fate(call);
            seen.fetch_or(fate != Fate::Pass, Ordering::Relaxed);
            fate
        });
        let answer = faults.until_killed(handler).await;
        let reached = faults.calls() > self.call;
        faults.clear();
        Run { answer, reached, failed: failed.load(Ordering::Relaxed) }
    }

    fn fate(self, call: &Call) -> Fate {
        let (hit, first, since) = (call.number == self.call, call.tried == 0, call.number >= self.call);
        let is_write = matches!(call.operation.as_str(), "PutItem" | "UpdateItem" | "DeleteItem");
        let is_transaction = call.operation == "TransactWriteItems";
        match self.way {
            Way::ErrorBefore if hit => Fate::Refuse(500, "InternalServerError"),
            Way::ErrorBeforeOnce if hit && first => Fate::Refuse(500, "InternalServerError"),
            Way::ReplyLost if hit => Fate::LoseReply,
            Way::ReplyLostOnce if hit && first => Fate::LoseReply,
            Way::Throttled if hit => Fate::Refuse(400, "ThrottlingException"),
            Way::ThrottledFromHereOn if since => Fate::Refuse(400, "ThrottlingException"),
            Way::Conflict if hit && is_write => Fate::Refuse(400, "TransactionConflictException"),
            Way::Cancelled(reason) if hit && is_transaction => Fate::CancelTransaction(reason),
            Way::CancelledFromHereOn(reason) if since && is_transaction => Fate::CancelTransaction(reason),
            Way::EntryRefused if hit && call.operation == "SendMessageBatch" => Fate::RefuseFirstEntry,
            Way::KilledBefore if hit => Fate::KillBefore,
            Way::KilledAfter if hit => Fate::KillAfter,
            _ => Fate::Pass,
        }
    }
}

/// Runs a case for each call in each of these ways, without and with disturbances, until a case does not reach its
/// call. A case returns whether its call was reached and whether one failed. Returns how many cases had a failed
/// call, and how many calls there are.
pub(crate) async fn every_crash_point(
    harness: &str,
    ways: impl IntoIterator<Item = Way> + Clone,
    case: impl AsyncFn(FaultPlan, bool) -> Result<(bool, bool)>,
) -> Result<(usize, usize)> {
    let (mut cases, mut calls) = (0, 0);
    for disturbed in [false, true] {
        for way in ways.clone() {
            for call in 0.. {
                let (reached, failed) = case(FaultPlan { call, way }, disturbed).await?;
                if !reached {
                    break;
                }
                calls = calls.max(call + 1);
                if failed {
                    let disturbed = if disturbed { "disturbed " } else { "" };
                    note_case(harness, format_args!("{disturbed}{way:?}"), call)?;
                    cases += 1;
                }
            }
        }
    }
    Ok((cases, calls))
}
