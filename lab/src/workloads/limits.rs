//! Operators deploy lower and higher limits of due dates, and release dates that are held, while the counters lag.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Result, anyhow};
use chrono::{DateTime, TimeDelta, Utc};
use fastrand::Rng;
use payments_machine::layers::attributes::{number, text};
use payments_model::{Actor, SwitchChange, UtcSecond};
use payments_store::DayRelease;
use serde_json::{Value, json};
use tokio::task::spawn_local;

use crate::plans::faults::FaultKind;
use crate::plans::limits::{DayLimits, LIMITED, Limit};
use crate::time::pause;
use crate::world::bank::Bank;
use crate::world::lag;

/// The most tries of a release, which fails now and then.
const TRIES: u32 = 120;

/// Starts the operators, and the lag of the counters.
pub(crate) fn start(bank: &Arc<Bank>, days: u32) {
    let Some(limits) = bank.limits.clone() else { return };
    bank.faults.count(FaultKind::DayLimited);
    let last = bank.begin + TimeDelta::days(days.into()) - TimeDelta::hours(8);
    spawn_local(lag_behind(Arc::clone(bank), last));
    spawn_local(run(Arc::clone(bank), limits, last));
}

async fn run(bank: Arc<Bank>, limits: DayLimits, last: DateTime<Utc>) {
    let mut random = bank.seed.source("changes of limits");
    loop {
        let left = last - bank.time.now();
        pause(TimeDelta::minutes(random.i64(60..900)).min(left.max(TimeDelta::zero()))).await;
        let now = bank.time.now();
        if now >= last || !bank.faults.has(FaultKind::DayLimited) {
            // All held payments are claimed at last.
            return limits.deploy(now, limits.levels().len() - 1);
        }
        let held = held(&bank);
        held.iter().for_each(|_| bank.faults.count(FaultKind::DayLimited));
        if random.bool() || held.is_empty() {
            limits.deploy(now, random.usize(0..limits.levels().len() - 1));
        } else {
            let item = &held[random.usize(0..held.len())];
            bank.busy_with(release(&bank, &limits, item, &mut random), "a date is not released").await;
        }
    }
}

/// The items of reserved claims whose dates are held.
fn held(bank: &Bank) -> Vec<Value> {
    let query = json!({
        "TableName": "payments", "KeyConditionExpression": "pk = :claims", "FilterExpression": "attribute_exists(heldSince)",
        "ExpressionAttributeValues": { ":claims": { "S": "CLAIMS" } },
    });
    let found = bank.engine.call("Query", &query).ok();
    found.and_then(|mut found| found["Items"].as_array_mut().map(std::mem::take)).unwrap_or_default()
}

/// Releases a date for more payments than were claimed.
async fn release(bank: &Bank, limits: &DayLimits, item: &Value, random: &mut Rng) -> Result<()> {
    let date = text(item, "sk");
    let mut more = |name: &str| number(item, name) + random.u64(0..number(item, name).max(10));
    let up_to = Limit { payments: more("payments").max(1), sum: more(LIMITED).max(1) };
    // A call that fails may be done.
    limits.release(bank.time.now(), date, up_to);
    let store = bank.lambda.operator();
    for _ in 0..TRIES {
        if !bank.switches.is_restoring()
            && let Ok(known) = store.day_release(date.parse()?).await
        {
            let (at, reason) = (UtcSecond::new(bank.time.now())?, "a busy day".to_owned());
            let change = SwitchChange { by: Actor::operator("ada"), at, reason };
            let version = known.map_or(1, |release| release.version + 1);
            let release = DayRelease { version, up_to: up_to.text().parse()?, change };
            if store.release_day(date.parse()?, &release).await.is_ok_and(|is_done| is_done) {
                return Ok(());
            }
        }
        pause(lag::LONGEST).await;
    }
    Err(anyhow!("{date} cannot be released"))
}

/// Makes the counters lag about an hour, often while the feed arrives.
async fn lag_behind(bank: Arc<Bank>, last: DateTime<Utc>) {
    let mut random = bank.seed.source("lag of counters");
    while bank.time.now() < last && bank.faults.has(FaultKind::DayLimited) {
        let from = TimeDelta::minutes(if random.bool() { 50 } else { random.i64(0..20 * 60) });
        pause(from).await;
        bank.switches.uncounted.store(true, Ordering::Relaxed);
        let lag = TimeDelta::minutes(random.i64(40..90));
        pause(lag).await;
        bank.switches.uncounted.store(false, Ordering::Relaxed);
        pause(TimeDelta::days(1) - from - lag).await;
    }
}
