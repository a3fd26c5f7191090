//! One month: its parts, and its course.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use payments_machine::layers::attributes::text;
use payments_machine::layers::random::Seed;
use payments_machine::layers::record::write_units;
use payments_machine::layers::trace::Trace;
use payments_model::BusinessZone;
use serde::Serialize;
use tokio::task::{LocalSet, spawn_local};

use crate::checks::checker::Checker;
use crate::checks::expectations::wrong_alarms;
use crate::checks::{sealed, story};
use crate::laws::journal;
use crate::laws::reports::published;
use crate::opening::build;
use crate::plans::acts::AmendmentCounts;
use crate::plans::faults::FaultCounts;
use crate::plans::outages::Outage;
use crate::settings::Settings;
use crate::time::pause;
use crate::workloads::triggers;
use crate::workloads::{amendments, clients, expiry, hostile, limits, readers, redates, restores, undos, webhooks};
use crate::world::alarms::RaisedAlarms;
use crate::world::bank::Bank;
use crate::{ending, minutes};

/// The beginnings of months: each has a change of some clocks in it.
const BEGINS: [&str; 2] = ["2026-03-12T00:00:00Z", "2026-10-12T00:00:00Z"];

/// The zones of the bank.
const ZONES: [&str; 3] = ["Europe/London", "America/New_York", "Asia/Tokyo"];

/// The outcome of a month.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Month {
    /// The seed.
    pub seed: u64,
    /// The bank's time zone.
    pub zone: String,
    /// Payments that clients asked for.
    pub asked: usize,
    /// Payments by status at the end.
    pub ends: BTreeMap<String, u64>,
    /// Faults by kind.
    #[serde(serialize_with = "by_name")]
    pub faults: FaultCounts,
    /// The acts of clients with amendments, by kind.
    #[serde(serialize_with = "by_name")]
    pub amendments: AmendmentCounts,
    /// Invocations that failed and were made again.
    pub troubles: usize,
    /// Requests to the transaction service.
    pub requests: usize,
    /// Lists that clients read to their end.
    pub lists: usize,
    /// The calls of the functions, by function and operation.
    pub calls: BTreeMap<String, u64>,
    /// The write units that all calls used.
    pub write_units: u64,
    /// The number of days that were played, up to that of the first violation, or the last.
    pub days: u32,
    /// The beginning of each planned outage.
    #[serde(serialize_with = "by_name")]
    pub outages: BTreeMap<Outage, DateTime<Utc>>,
    /// Payments that the bank moved off closed dates.
    pub redated: u64,
    /// The restores of the tables, in words.
    pub restores: Vec<String>,
    /// The alarms that went off, and when.
    pub alarms: RaisedAlarms,
    /// The violations, in the order in which they were found.
    pub violations: Vec<String>,
    /// The story of the payment that the first violation names.
    pub story: Vec<String>,
    /// The time on this machine, in milliseconds.
    pub took_ms: u128,
    /// A digest of everything that went over the network.
    pub trace: String,
}

fn by_name<Kind: std::fmt::Debug, Value: Serialize, S: serde::Serializer>(
    values: &std::collections::BTreeMap<Kind, Value>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(kind, value)| (format!("{kind:?}"), value)))
}

/// Plays a month on this thread.
///
/// # Errors
/// If the world cannot be made. Violations of payments are in the month.
pub fn play(settings: &Settings) -> Result<Month> {
    play_watched(settings, || {})
}

/// Plays a month on this thread, and says when a day is over.
///
/// # Errors
/// As [`play`].
pub fn play_watched(settings: &Settings, watch: impl Fn()) -> Result<Month> {
    play_on_thread(settings, &watch)
}

/// The month itself, which is compiled in this crate and not again in each that watches it.
fn play_on_thread(settings: &Settings, watch: &dyn Fn()) -> Result<Month> {
    // The SDK draws its waits and ids from this thread's generator.
    fastrand::seed(settings.seed);
    let started = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let month = LocalSet::new().block_on(&runtime, played(settings, watch));
    drop(runtime);
    month.map(|month| Month { took_ms: started.elapsed().as_millis(), ..month })
}

async fn played(settings: &Settings, watch: &dyn Fn()) -> Result<Month> {
    let seed = Seed(settings.seed);
    let mut random = seed.source("month");
    let begin: DateTime<Utc> = BEGINS[random.usize(0..BEGINS.len())].parse()?;
    let zone: BusinessZone = ZONES[random.usize(0..ZONES.len())].parse()?;
    let (bank, trace, files) = build(settings, seed, begin, zone).await?;
    triggers::start(&bank, zone)?;
    minutes::start(&bank, settings.outages)?;
    let end = begin + TimeDelta::days(i64::from(settings.days));
    spawn_local(clients::run(Arc::clone(&bank), settings.payments, end, amendments::start));
    spawn_local(readers::run(Arc::clone(&bank), end));
    bank.state().consumer.may_lack = settings.outages.contains(&Outage::RecordsTrimmed);
    spawn_local(readers::follow_events(Arc::clone(&bank)));
    spawn_local(hostile::run(Arc::clone(&bank), end));
    spawn_local(expiry::run(Arc::clone(&bank)));
    restores::start(&bank, &files, settings.days);
    redates::start(&bank, settings.days);
    undos::start(&bank, &files, settings.days);
    limits::start(&bank, settings.days);
    let mut checker = Checker::new(settings.outages.is_empty().then(|| settings.dispatch_attempts()));
    for _ in 0..settings.days {
        pause(TimeDelta::days(1)).await;
        bank.state().days += 1;
        watch();
        let tables = checker.check(&bank)?;
        sealed::check(&bank, &files, &tables, (settings, &mut checker)).await?;
        ending::check_events_so_far(&bank, &tables, &mut checker, settings.outages);
        if !checker.violations.is_empty() {
            break;
        }
    }
    if checker.violations.is_empty() {
        if !ending::wait(&bank).await {
            checker.violations.insert("heads are left in the hot table for good".to_owned());
        }
        readers::read_events(&bank, 1_000).await;
        let tables = checker.check(&bank)?;
        checker.check_end(&bank, &tables, &published(&files).await?);
        ending::check_counts(&bank, &tables, &mut checker).await?;
        ending::check_queues(&bank, &tables, &mut checker);
        ending::check_findings(&bank, &tables, &mut checker);
        ending::check_log(&bank, &mut checker)?;
        let sealed = sealed::check_end(&bank, &files, (settings, &mut checker)).await?;
        checker.violations.extend(readers::check_sealed(&bank, &sealed).await);
        if settings.is_healthy() && settings.outages.is_empty() {
            ending::check_requests(&bank, &mut checker);
        }
        ending::check_events(&bank, &tables, &mut checker, settings.outages);
        checker.violations.extend(webhooks::check(&bank).await);
        let consumer = std::mem::take(&mut bank.state().consumer);
        let lost = (bank.state().lost_epoch, &consumer.before[..]);
        checker.violations.extend(journal::check(&files, &consumer.seen, lost).await);
    }
    let mut month = outcome(settings, &bank, checker, &trace)?;
    if settings.is_healthy() && settings.weakness.is_none() {
        month.violations.extend(wrong_alarms(&month.outages, &month.alarms));
    }
    Ok(month)
}

fn outcome(settings: &Settings, bank: &Bank, checker: Checker, trace: &Trace) -> Result<Month> {
    let tables = crate::checks::checker::tables(bank)?;
    let mut ends = BTreeMap::new();
    for head in tables.heads().into_values() {
        *ends.entry(text(head, "status").to_owned()).or_default() += 1;
    }
    let story = checker.violations.first().map(|violation| story::tell(bank, violation)).unwrap_or_default();
    let state = bank.state();
    Ok(Month {
        seed: settings.seed,
        zone: bank.zone.to_string(),
        asked: state.intents.len(),
        ends,
        faults: bank.faults.counts(),
        amendments: state.amendments.clone(),
        troubles: state.troubles.len(),
        requests: bank.requests.sent().len(),
        lists: state.lists,
        calls: trace.calls(),
        write_units: write_units(&bank.network.used()),
        days: state.days,
        story,
        outages: state.began.clone(),
        redated: state.redated,
        restores: state.restores.clone(),
        alarms: bank.alarms.raised(),
        violations: checker.violations.into_iter().collect(),
        took_ms: 0,
        trace: trace.digest(),
    })
}
