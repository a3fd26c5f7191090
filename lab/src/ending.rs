//! The end of a month: faults cease, and everything that was begun must come to its end.

use std::collections::BTreeSet;

use anyhow::Result;
use chrono::{Days, TimeDelta};
use payments_machine::Handlers as _;
use payments_machine::invocation::context;
use payments_machine::layers::sqs::Sent;
use serde_json::{Value, json};

use crate::checks::checker::{Checker, scan};
use crate::facts::heads::{Tables, id_of};
use crate::laws::amended_events;
use crate::laws::counters;
use crate::laws::event_origins;
use crate::laws::findings;
use crate::laws::kept_segments::check_segment;
use crate::plans::outages::Outage;
use crate::time::pause;
use crate::workloads::triggers::until;
use crate::world::bank::Bank;
use crate::world::network::LOG;

/// The longest time until all work ends: the waits of a payment that is redriven to the last.
const LONGEST_END: TimeDelta = TimeDelta::days(25);

/// Ends the faults, and waits until no head is left in the hot table and no operator works. Returns whether it came to that.
pub(crate) async fn wait(bank: &Bank) -> bool {
    bank.faults.end();
    bank.switches.release();
    // Each head is in this index, so one entry proves that some are left. An empty index proves nothing.
    let one = json!({ "TableName": "payments", "IndexName": "due", "Select": "COUNT", "Limit": 1 });
    let all = json!({ "TableName": "payments", "FilterExpression": "begins_with(pk, :heads)", "Select": "COUNT",
        "ExpressionAttributeValues": { ":heads": { "S": "ACCT#" } } });
    let is_empty = |scan: &Value| bank.engine.call("Scan", scan).is_ok_and(|left| left["Count"] == 0);
    let emptied = until(LONGEST_END, async || bank.state().busy == 0 && is_empty(&one) && is_empty(&all));
    let emptied = emptied.await;
    // The counters and the last results come after.
    pause(TimeDelta::hours(3)).await;
    emptied
}

/// Compares what the consumer knows so far with the heads, unless it has not heard of a restore yet, or something else changes heads.
pub(crate) fn check_events_so_far(bank: &Bank, tables: &Tables, checker: &mut Checker, outages: &[Outage]) {
    let state = bank.state();
    if outages.is_empty() && state.consumer.restores == state.restores.len() {
        checker.violations.extend(state.consumer.differences_so_far(tables));
        checker.violations.extend(amended_events::check(&state.consumer.seen, &state.intents));
        checker.violations.extend(state.consumer.misread(&mut bank.seed.source("order of events")));
    }
}

/// Compares what the consumer knows with the heads of both tables.
/// The log marks a gap if records were trimmed, and else only if something damaged the counters.
pub(crate) fn check_events(bank: &Bank, tables: &Tables, checker: &mut Checker, outages: &[Outage]) {
    let state = bank.state();
    let (must, may) = (Outage::RecordsTrimmed, Outage::AmountDamaged);
    match state.consumer.has_gap() {
        false if outages.contains(&must) => {
            checker.violations.insert("records were trimmed, and the log marks no gap".to_owned());
        }
        true if !outages.contains(&must) && !outages.contains(&may) && state.restores.is_empty() => {
            checker.violations.insert("the log marks a gap without cause".to_owned());
        }
        _ => {}
    }
    checker.violations.extend(state.consumer.differences(tables, !state.by_hand.places.is_empty()));
    if outages.is_empty() {
        checker.violations.extend(amended_events::check(&state.consumer.seen, &state.intents));
        checker.violations.extend(event_origins::check(&state.consumer.seen, &bank.changes.log()));
    }
    checker.violations.extend(state.consumer.misread(&mut bank.seed.source("order of events")));
}

/// Segments of the log stay for as long as readers may come.
pub(crate) fn check_log(bank: &Bank, checker: &mut Checker) -> Result<()> {
    checker.violations.extend(scan(bank, LOG)?.values().filter_map(check_segment));
    Ok(())
}

/// Without faults each payment that is claimed is sent once.
pub(crate) fn check_requests(bank: &Bank, checker: &mut Checker) {
    let mut sent = BTreeSet::new();
    for Sent { at, request, .. } in bank.requests.sent().clone() {
        if !sent.insert(request["paymentId"].to_string()) {
            checker.violations.insert(format!("{at}: nothing had failed, and a payment is sent again: {request}"));
        }
    }
}

/// Compares the counters with the heads of both tables, and with a recount.
pub(crate) async fn check_counts(bank: &Bank, tables: &Tables, checker: &mut Checker) -> Result<()> {
    checker.violations.extend(counters::between(&counters::shown(&tables.hot), &counters::recounted(tables)));
    recount(bank, checker).await
}

async fn recount(bank: &Bank, checker: &mut Checker) -> Result<()> {
    let now = bank.time.now();
    let [from, to] = [bank.begin, now + TimeDelta::days(5)].map(|at| at.date_naive() - Days::new(2));
    let input = json!({ "action": "recount", "from": from.to_string(), "to": to.to_string() });
    let context = context(now + TimeDelta::minutes(15));
    let dates = (to - from).num_days() + 1;
    let outcome: Result<Value, String> = bank.lambda.functions().scheduled("recount", input, context).await;
    match outcome {
        Ok(outcome) if outcome["exact"] == dates => {}
        Ok(outcome) => drop(checker.violations.insert(format!("a recount differs: {outcome}"))),
        Err(error) => drop(checker.violations.insert(format!("the recount failed: {error}"))),
    }
    Ok(())
}

/// The findings are the results that contradict their payments. A restore can take back a settlement or a finding.
pub(crate) fn check_findings(bank: &Bank, tables: &Tables, checker: &mut Checker) {
    let state = bank.state();
    if !state.restores.is_empty() {
        return;
    }
    let asked: BTreeSet<String> =
        bank.requests.sent().iter().filter_map(|sent| Some(sent.request["paymentId"].as_str()?.to_owned())).collect();
    let settlement = |id: String| Some((id.clone(), state.service.settings().settlement_of(id.parse().ok()?)));
    let settlements: Vec<_> = asked.into_iter().filter_map(settlement).collect();
    checker.violations.extend(findings::check(tables, &state.told, &settlements));
}

/// The queues are empty, except for results of payments that a restore lost. Records that
/// `dispatch` gave up are in a queue of their own, and their payments are redriven.
pub(crate) fn check_queues(bank: &Bank, tables: &Tables, checker: &mut Checker) {
    let now = bank.time.now();
    let queues = &bank.queues;
    delete_results_of_lost(bank, tables);
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

/// Deletes the dead letters that name a payment of which a restore left nothing, as an operator does.
fn delete_results_of_lost(bank: &Bank, tables: &Tables) {
    let dead_letters = &bank.queues.result_dead_letters;
    let left: BTreeSet<&str> = tables.heads().keys().map(|key| id_of(&key.1)).collect();
    loop {
        let received = dead_letters.receive(10, bank.time.now());
        if received.is_empty() {
            return;
        }
        for message in received {
            let result: Value = serde_json::from_str(&message.body).unwrap_or_default();
            let id = result["paymentId"].as_str().unwrap_or_default();
            if bank.state().lost.contains(id) && !left.contains(id) {
                dead_letters.delete(&message.receipt_handle);
            }
        }
    }
}
