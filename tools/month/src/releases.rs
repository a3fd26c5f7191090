//! Deployments: the release before this one comes for some hours, and goes.
//!
//! Settling pauses at each change, and the older release comes only if no settlement is between its writes then, as
//! `docs/deploy.md` asks for. It often comes when somebody would want it back: when `settle` has lost DynamoDB.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chrono::TimeDelta;
use serde_json::Value;
use tokio::task::spawn_local;

use crate::attributes::{Key, text};
use crate::bank::Bank;
use crate::checker;
use crate::faults::FaultKind;
use crate::laws::is_settled;
use crate::time::pause;
use crate::weakness::Weakness;

/// How long settling is paused at a change: longer than an invocation takes.
const PAUSE: TimeDelta = TimeDelta::minutes(5);

/// Starts what deploys the older release now and then.
pub(crate) fn start(bank: &Arc<Bank>) {
    spawn_local(run(Arc::clone(bank)));
}

async fn run(bank: Arc<Bank>) {
    let mut random = bank.seed.source("releases");
    let is_hasty = bank.weakness == Some(Weakness::HastyRollback);
    loop {
        wait(&bank, random.i64(12..60)).await;
        if !bank.faults.has(FaultKind::Rollback) || bank.switches.is_restoring() {
            continue;
        }
        pause_settling(&bank).await;
        // The faults may have ended meanwhile, or a table was lost.
        let may_come = bank.faults.has(FaultKind::Rollback) && !bank.switches.is_restoring();
        if may_come && (is_hasty || none_in_between(&bank)) {
            bank.switches.older.store(true, Ordering::Relaxed);
            bank.switches.cut_off.store(false, Ordering::Relaxed);
            bank.switches.settling_paused.store(false, Ordering::Relaxed);
            bank.faults.count(FaultKind::Rollback);
            pause(TimeDelta::minutes(random.i64(60..2_400))).await;
            pause_settling(&bank).await;
            bank.switches.older.store(false, Ordering::Relaxed);
        }
        bank.switches.settling_paused.store(false, Ordering::Relaxed);
    }
}

/// Waits for so many hours, or until `settle` has lost DynamoDB, but for half a day at least.
async fn wait(bank: &Bank, hours: i64) {
    pause(TimeDelta::hours(12)).await;
    for _ in 12..hours {
        if bank.switches.is_cut_off() {
            return;
        }
        pause(TimeDelta::hours(1)).await;
    }
}

/// Pauses settling until no invocation is under way.
async fn pause_settling(bank: &Bank) {
    bank.switches.settling_paused.store(true, Ordering::Relaxed);
    pause(PAUSE).await;
}

/// Whether the long-term table has no settlement of a payment that is pending in the hot table.
fn none_in_between(bank: &Bank) -> bool {
    let Ok(hot) = checker::scan(bank, "payments") else { return false };
    let is_in_between = |((pk, sk), head): (&Key, &Value)| {
        let is_settled = || bank.item("payment-history", pk, sk).is_some_and(|head| is_settled(text(&head, "status")));
        text(head, "status") == "PENDING" && is_settled()
    };
    !hot.iter().any(is_in_between)
}
