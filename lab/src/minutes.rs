//! The end of each minute: metrics are collected, alarms are evaluated, and an operator is called.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use tokio::task::spawn_local;

use crate::plans::outages::Outage;
use crate::time::{pause, to_next};
use crate::workloads::runbook::{self, Action};
use crate::workloads::triggers::is_polled;
use crate::workloads::{onset, operator};
use crate::world::bank::Bank;

/// Starts the minutes of a month, and its outages.
pub(crate) fn start(bank: &Arc<Bank>, outages: &'static [Outage]) -> Result<()> {
    let actions = runbook::actions()?;
    spawn_local(run(Arc::clone(bank), outages, actions));
    for (outage, begins_after) in Outage::beginnings(outages) {
        let bank = Arc::clone(bank);
        spawn_local(async move {
            let begins = async {
                pause(begins_after).await;
                onset::begin(&bank, outage).await
            };
            bank.busy_with(begins, &format!("{outage:?} cannot begin")).await;
        });
    }
    Ok(())
}

async fn run(bank: Arc<Bank>, outages: &[Outage], actions: BTreeMap<String, Vec<Action>>) {
    loop {
        pause(to_next(TimeDelta::minutes(1), bank.time.now())).await;
        let now = bank.time.now();
        match end_minute(&bank, now) {
            // Only planned outages have an operator: faults come and go.
            Ok(new) if !outages.is_empty() => {
                for alarm in new {
                    let actions = actions.get(&alarm).cloned().unwrap_or_default();
                    operator::call(&bank, alarm, actions, Outage::operator_comes_after(outages));
                }
            }
            Ok(_) => {}
            Err(error) => bank.complain(format!("the minute's metrics: {error:#}")),
        }
    }
}

/// Collects the metrics of the minute that ends now, and evaluates all alarms. Returns those that were just raised.
fn end_minute(bank: &Bank, now: DateTime<Utc>) -> Result<Vec<String>> {
    for package in ["dispatch", "stream-aggregator", "settle"] {
        if is_polled(bank, package) {
            bank.metrics.polled(package, 0);
        }
    }
    bank.metrics.look_at(&bank.queues, now);
    Ok(bank.alarms.step(now, &bank.metrics.take(now)?))
}
