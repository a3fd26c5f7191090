//! The end of a month: faults cease, and everything that was begun must come to its end.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use anyhow::Result;
use chrono::TimeDelta;
use payments_local::Function;
use serde_json::{Value, json};

use crate::attributes::text;
use crate::bank::Bank;
use crate::checker::{Checker, Tables};
use crate::time::pause;
use crate::triggers::{context, until};

/// How long everything may take to come to its end: the waits of a payment that is redriven to the last.
const LONGEST_END: TimeDelta = TimeDelta::days(25);

/// Ends the faults, and waits until no head is left in the hot table and no operator works. Returns whether it came to that.
pub(crate) async fn wait(bank: &Bank) -> bool {
    bank.faults.end();
    bank.switches.paused.store(false, Ordering::Relaxed);
    bank.switches.stalled.store(false, Ordering::Relaxed);
    let emptied = until(LONGEST_END, async || {
        let count = json!({ "TableName": "payments", "FilterExpression": "begins_with(pk, :heads)", "Select": "COUNT",
            "ExpressionAttributeValues": { ":heads": { "S": "ACCT#" } } });
        bank.state().busy == 0 && bank.engine.call("Scan", &count).is_ok_and(|left| left["Count"] == 0)
    });
    let emptied = emptied.await;
    // The counters and the last results come after.
    pause(TimeDelta::hours(3)).await;
    emptied
}

/// Compares the counters with the heads of both tables, and with a recount.
pub(crate) async fn check_counts(bank: &Bank, tables: &Tables, checker: &mut Checker) -> Result<()> {
    let mut counted: BTreeMap<String, i64> = BTreeMap::new();
    for (pk, sk) in tables.hot.keys().filter(|(pk, _)| pk.starts_with("COUNTS#")) {
        let item = &tables.hot[&(pk.clone(), sk.clone())];
        let value = |name: &str| item[name]["N"].as_str().and_then(|number| number.parse::<i64>().ok()).unwrap_or(0);
        for status in ["SCHEDULED", "PENDING", "PROCESSED", "FAILED", "CANCELLED", "archived", "unparsed"] {
            *counted.entry(format!("{sk} {status}")).or_default() += value(status);
        }
    }
    counted.retain(|_, count| *count != 0);
    let mut found: BTreeMap<String, i64> = BTreeMap::new();
    for (key, head) in tables.heads() {
        // `due` is the status, the date, the instant and the id.
        let date = text(head, "due").split('#').nth(1).unwrap_or_default();
        *found.entry(format!("{date} {}", text(head, "status"))).or_default() += 1;
        if !tables.hot.contains_key(key) {
            *found.entry(format!("{date} archived")).or_default() += 1;
        }
    }
    for (what, count) in &found {
        let shown = counted.get(what).copied().unwrap_or(0);
        if shown != *count {
            checker.violations.insert(format!("the counters show {shown} {what}, and there are {count}"));
        }
    }
    for (what, shown) in counted.iter().filter(|(what, _)| !found.contains_key(*what)) {
        checker.violations.insert(format!("the counters show {shown} {what}, and there are none"));
    }
    recount(bank, checker).await
}

async fn recount(bank: &Bank, checker: &mut Checker) -> Result<()> {
    let input = json!({ "action": "recount" });
    let context = context(bank.time.now() + TimeDelta::minutes(15));
    let outcome: Result<Value, String> = bank.lambda.functions().scheduled(Function::Recount, input, context).await;
    match outcome {
        Ok(outcome) if outcome["drifted"] == 0 => {}
        Ok(outcome) => drop(checker.violations.insert(format!("a recount differs: {outcome}"))),
        Err(error) => drop(checker.violations.insert(format!("the recount failed: {error}"))),
    }
    Ok(())
}

/// Nothing is left in a queue, except what an operator was told of.
pub(crate) fn check_queues(bank: &Bank, checker: &mut Checker) {
    let now = bank.time.now();
    let queues = &bank.queues;
    for (name, queue) in [
        ("requests", &queues.requests),
        ("results", &queues.results),
        ("request dead letters", &queues.request_dead_letters),
        ("result dead letters", &queues.result_dead_letters),
    ] {
        let counts = queue.counts(now);
        if counts.visible + counts.in_flight > 0 {
            checker.violations.insert(format!("{} messages are left in {name}", counts.visible + counts.in_flight));
        }
    }
}
