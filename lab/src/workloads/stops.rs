//! Stops: now and then an operator stops all claims and sends for minutes, and then resumes.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::laws::stops::HISTORY;
use crate::plans::faults::FaultKind;
use crate::time::{pause, to_next};
use crate::world::bank::Bank;

/// The key of the switch.
const CONTROL: (&str, &str) = ("CONTROL", "SWITCH");

/// Stops and resumes. Months without faults have no stop, and a stop ends with the faults.
pub(crate) async fn run(bank: Arc<Bank>) {
    let mut random = bank.seed.source("stops");
    let mut next = bank.time.now() + TimeDelta::hours(random.i64(2..40));
    // A stop has whole seconds.
    loop {
        pause(to_next(TimeDelta::minutes(1), bank.time.now()) + TimeDelta::seconds(random.i64(0..60))).await;
        let now = bank.time.now();
        // A restore brings the switch of an earlier instant back.
        let is_stopped = switch(&bank)["stopped"]["BOOL"] == true;
        let may_stop = bank.faults.has(FaultKind::Stopped);
        if may_stop && now < next {
            if is_stopped && !bank.state().stopped {
                turn(&bank, false, now);
            }
            continue;
        }
        if !may_stop && !is_stopped {
            return;
        }
        let stops = may_stop && !bank.state().stopped;
        turn(&bank, stops, now);
        if stops {
            bank.faults.count(FaultKind::Stopped);
        }
        bank.state().stopped = stops;
        let lasts = if stops { random.i64(1..90) } else { random.i64(2 * 60..40 * 60) };
        next = now + TimeDelta::minutes(lasts);
    }
}

/// The switch as it is.
pub(crate) fn switch(bank: &Bank) -> Value {
    bank.item(HISTORY, CONTROL.0, CONTROL.1).unwrap_or_default()
}

fn turn(bank: &Bank, stopped: bool, now: DateTime<Utc>) {
    if let Err(error) = put(bank, stopped, now) {
        bank.complain(format!("the switch cannot be turned: {error:#}"));
    }
}

fn put(bank: &Bank, stopped: bool, now: DateTime<Utc>) -> Result<()> {
    let text = |text: &str| json!({ "S": text });
    let version = switch(bank)["version"]["N"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0_u64) + 1;
    let at = now.to_rfc3339_opts(SecondsFormat::Secs, true);
    let item = json!({
        "pk": text(CONTROL.0), "sk": text(CONTROL.1), "version": { "N": version.to_string() },
        "stopped": { "BOOL": stopped }, "by": text("o:ada"), "at": text(&at), "reason": text("by chance"),
        "heldDates": { "L": [] },
    });
    let put = bank.engine.call("PutItem", &json!({ "TableName": HISTORY, "Item": item }));
    put.map(drop).map_err(|error| anyhow!("{error}"))
}
