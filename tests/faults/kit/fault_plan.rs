//! The ways in which a call of a handler fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use payments_machine::{Call, Fate};
use payments_tests::{CrashPoint, CrashPoints, Way};

use super::fault_injector::FaultInjector;

/// An error before the call is done.
const ERROR: Fate = Fate::Refuse(500, "InternalServerError");

const THROTTLED: Fate = Fate::Refuse(400, "ThrottlingException");

const TRANSACTIONS: &[&str] = &["TransactWriteItems"];

/// The call is done and the reply lost, on every try.
pub(crate) const REPLY_LOST: Way = Way::once(Fate::LoseReply).named("ReplyLost");

/// The call is done and the first reply lost: the SDK's second try finds the effect of the first.
pub(crate) const REPLY_LOST_ONCE: Way = Way::once(Fate::LoseReply).at_first_try().named("ReplyLostOnce");

/// The call and all later calls are throttled.
pub(crate) const THROTTLED_FROM_HERE_ON: Way = Way::lasting(THROTTLED).named("ThrottledFromHereOn");

/// The process is killed before the call.
pub(crate) const KILLED_BEFORE: Way = Way::once(Fate::KillBefore).named("KilledBefore");

/// The process is killed after the call.
pub(crate) const KILLED_AFTER: Way = Way::once(Fate::KillAfter).named("KilledAfter");

/// A transaction conflicts with another one on its items.
pub(crate) const CANCELLED_BY_CONFLICT: Way = Way::once(Fate::CancelTransaction("TransactionConflict"))
    .for_operations(TRANSACTIONS)
    .named(r#"Cancelled("TransactionConflict")"#);

/// A transaction is cancelled because a condition of its first action fails.
pub(crate) const CANCELLED_BY_CONDITION: Way = Way::once(Fate::CancelTransaction("ConditionalCheckFailed"))
    .for_operations(TRANSACTIONS)
    .named(r#"Cancelled("ConditionalCheckFailed")"#);

/// The ways in which any call is made to fail.
pub(crate) const WAYS: [Way; 10] = [
    Way::once(ERROR).named("ErrorBefore"),
    Way::once(ERROR).at_first_try().named("ErrorBeforeOnce"),
    REPLY_LOST,
    REPLY_LOST_ONCE,
    Way::once(THROTTLED).named("Throttled"),
    THROTTLED_FROM_HERE_ON,
    // A write that conflicts with a transaction on its item.
    Way::once(Fate::Refuse(400, "TransactionConflictException"))
        .for_operations(&["PutItem", "UpdateItem", "DeleteItem"])
        .named("Conflict"),
    // SQS rejects the first message of a batch.
    Way::once(Fate::RefuseFirstEntry).for_operations(&["SendMessageBatch"]).named("EntryRefused"),
    KILLED_BEFORE,
    KILLED_AFTER,
];

/// The ways in which only transactions fail: this one, or it and all later ones.
pub(crate) const WAYS_OF_TRANSACTIONS: [Way; 6] = [
    CANCELLED_BY_CONFLICT,
    Way::once(Fate::CancelTransaction("ThrottlingError"))
        .for_operations(TRANSACTIONS)
        .named(r#"Cancelled("ThrottlingError")"#),
    CANCELLED_BY_CONDITION,
    Way::lasting(Fate::CancelTransaction("TransactionConflict"))
        .for_operations(TRANSACTIONS)
        .named(r#"CancelledFromHereOn("TransactionConflict")"#),
    Way::lasting(Fate::CancelTransaction("ThrottlingError"))
        .for_operations(TRANSACTIONS)
        .named(r#"CancelledFromHereOn("ThrottlingError")"#),
    Way::lasting(Fate::CancelTransaction("ConditionalCheckFailed"))
        .for_operations(TRANSACTIONS)
        .named(r#"CancelledFromHereOn("ConditionalCheckFailed")"#),
];

/// A fate of the calls of one operation.
pub(crate) fn of_calls(operation: &'static str, fate: Fate) -> impl Fn(&Call) -> Fate {
    move |call| if call.operation == operation { fate } else { Fate::Pass }
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

/// Runs a handler that fails at a point.
pub(crate) async fn run_to<T>(point: CrashPoint, faults: &FaultInjector, handler: impl Future<Output = T>) -> Run<T> {
    let failed = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&failed);
    faults.inject(move |call| {
        let fate = point.fate(call);
        seen.fetch_or(fate != Fate::Pass, Ordering::Relaxed);
        fate
    });
    let answer = faults.until_killed(handler).await;
    let reached = faults.calls() > point.call;
    faults.clear();
    Run { answer, reached, failed: failed.load(Ordering::Relaxed) }
}

/// Runs a case for each call in each of these ways, without and with disturbances, until a case does not reach its
/// call. A case returns whether its call was reached and whether one failed. Returns how many cases had a failed
/// call, and how many calls there are.
pub(crate) async fn every_crash_point(
    harness: &str,
    ways: impl IntoIterator<Item = Way> + Clone,
    case: impl AsyncFn(CrashPoint, bool) -> Result<(bool, bool)>,
) -> Result<(usize, usize)> {
    let (mut cases, mut calls) = (0, 0);
    for disturbed in [false, true] {
        let mut points = CrashPoints::new(harness, ways.clone());
        while let Some(point) = points.next_case() {
            match case(point, disturbed).await? {
                (true, true) => {
                    let disturbed = if disturbed { "disturbed " } else { "" };
                    points.failed(format_args!("{disturbed}{}", point.way.name))?;
                }
                (true, false) => points.reached(),
                (false, _) => {}
            }
        }
        (cases, calls) = (cases + points.cases(), calls.max(points.calls()));
    }
    Ok((cases, calls))
}
