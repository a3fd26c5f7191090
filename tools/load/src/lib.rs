//! `cargo load`: puts payments into a bank as fast as they go or at a rate, and then asks the bank
//! whether it has them all.

mod bank;
mod check;
mod lane;
mod load;
mod meter;
pub mod orders;
pub mod settings;
mod summary;

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use payments_local::Recorder;
use payments_local::recorder::write_units;
use payments_model::BusinessDate;

pub use bank::{Bank, Place};
pub use lane::FEED_PER_SECOND;
pub use meter::Quantiles;
pub use payments_local::progress::Progress;
pub use settings::{Settings, Size};
pub use summary::Summary;

use check::Standing;
use load::Load;
use orders::Orders;

/// The progress bars of a load.
pub const BARS: [&str; 2] = ["created", "counted"];

/// Runs a load against a bank and says what was found. Whether that is what had to be found,
/// [`Summary::check`] says.
///
/// # Errors
/// Where the bank cannot be asked; a payment that it refuses is in the summary.
pub async fn run(settings: &Settings, bank: &Bank, progress: &Progress) -> Result<Summary> {
    let due = settings.due.unwrap_or_else(|| default_due(settings, bank));
    progress.say("looking at what is there");
    let before = Standing::before(&bank.client, due).await?;
    bank.wire.as_ref().map(Recorder::take_capacity_use);
    // Where nothing was before, a seed makes the same payments, ids included, each time.
    let begins = if bank.is_new { 0 } else { bank.clock.instant().timestamp_millis() };
    let orders = Orders::of(settings, &format!("{}-{begins}", settings.seed), &due.to_string());
    let load = Arc::new(Load::new(settings, orders, bank.client.clone(), due)?);
    progress.say("putting payments in");
    load.run(bank.wire.as_ref(), progress, before.counts.total).await?;
    let wrote = bank.wire.as_ref().map(|wire| write_units(&wire.take_capacity_use()));
    let (marks, ended) = (load.course.marks(), Instant::now());
    progress.show(&[marks.latest.payments, 0]);

    progress.say("waiting for the counters");
    let wanted = before.counts.total + load.outcome.acknowledged();
    let mut counts = check::awaited(&bank.client, due, settings.patience, |counts| counts.total >= wanted).await?;
    let drain = ended.elapsed();
    if settings.mixed {
        progress.say("waiting for payments to be settled");
        // Sweeps come at their own times: a minute apart in `local`.
        let patience = settings.patience * 3;
        counts = check::awaited(&bank.client, due, patience, |counts| counts.open <= before.counts.open).await?;
    }
    let show = |found| progress.say(format!("reading the list of the date: {found}"));
    let listed = check::listed(&bank.client, due, show).await?;
    progress.say("recounting");
    let counters_exact = bank.counters_are_exact(due).await?;
    progress.clear();

    let more = |now: u64, before: u64| i64::try_from(now).and_then(|now| Ok(now - i64::try_from(before)?));
    let (counted, opened) = (more(counts.total, before.counts.total)?, more(counts.open, before.counts.open)?);
    Ok(Summary {
        bank: bank.what(),
        payments: settings.payments,
        seed: settings.seed,
        size: settings.size.to_string(),
        due,
        took: marks.latest.after,
        rates: [marks.rate(), marks.first_tenth(), marks.last_tenth()],
        acknowledged: load.outcome.acknowledged(),
        errors: load.outcome.errors(),
        retries: bank.client.retries(),
        counted,
        recounted: more(listed, before.listed)?,
        counters_exact,
        settled: settings.mixed.then_some(counted - opened),
        drain,
        latencies: load.lanes.iter().map(|lane| (lane.kind.name(), lane.latency.quantiles())).collect(),
        write_units: wrote,
        peak_memory: peak_memory(),
        trouble: load.outcome.trouble(),
    })
}

/// Tomorrow, so that nothing falls due while the load runs; in mixed mode today, so that it does.
fn default_due(settings: &Settings, bank: &Bank) -> BusinessDate {
    let today = settings.zone.date_of(bank.clock.now());
    if settings.mixed { today } else { today.plus_days(1) }
}

/// The most memory that this process has had, where the system is Linux.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1_024)
}
