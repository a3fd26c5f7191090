//! `cargo load`: creates payments as fast as possible or at a rate, and checks through the API that none is lost.

mod check;
mod load;
mod measurements;
pub mod orders;
pub mod process;
pub mod settings;
mod summary;
mod target;
mod workload;

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use payments_machine::Recorder;
use payments_machine::layers::record::write_units;

pub use payments_machine::progress::Progress;
pub use settings::{Settings, Size};
pub use summary::Summary;
pub use target::Target;

use load::Load;
use orders::Orders;

/// The progress bars of a load.
pub const BARS: [&str; 2] = ["created", "counted"];

/// Runs a load and returns what was measured and found. [`Summary::check`] says whether that is right.
pub async fn run(settings: &Settings, target: &Target, progress: &Progress) -> Result<Summary> {
    let client = &target.client;
    let today = settings.time_zone.date_of(target.clock.now());
    // Not today, so that nothing falls due during the load; but a mixed load wants that.
    let due = settings.due.unwrap_or_else(|| if settings.mixed { today } else { today.plus_days(1) });
    progress.say("reading the counters and the list of the date");
    let before = check::counts(client, due).await?;
    let listed_before = check::listed(client, due, |_| {}).await?;
    target.recorder.as_ref().map(Recorder::take_capacity_use);
    // On a new target a seed makes the same payments each time, with the same ids.
    let start = if target.is_new { 0 } else { target.clock.instant().timestamp_millis() };
    let orders = Orders::new(settings, &format!("{}-{start}", settings.seed), &due.to_string());
    let load = Arc::new(Load::new(settings, orders, client.clone(), due)?);
    load.run(target.recorder.as_ref(), progress, before.total).await?;
    let write_units = target.recorder.as_ref().map(|recorder| write_units(&recorder.take_capacity_use()));
    let (marks, ended) = (load.throughput.marks(), Instant::now());
    progress.show(&[marks.latest.payments, 0]);

    progress.say("waiting for the counters");
    let wanted = before.total + load.tally.acknowledged();
    let mut counts = check::counts_until(client, due, settings.wait(), |counts| counts.total >= wanted).await?;
    let drain = ended.elapsed();
    if settings.mixed {
        progress.say("waiting for payments to be settled");
        // In `local` a minute is between two sweeps.
        counts = check::counts_until(client, due, settings.wait() * 3, |counts| counts.open <= before.open).await?;
    }
    let show = |found| progress.say(format!("reading the list of the date: {found}"));
    let listed = check::listed(client, due, show).await?;
    progress.say("recounting");
    let counters_exact = target.counters_are_exact(due).await?;
    progress.clear();

    let more = |now: u64, before: u64| i64::try_from(now).and_then(|now| Ok(now - i64::try_from(before)?));
    let (counted, opened) = (more(counts.total, before.total)?, more(counts.open, before.open)?);
    Ok(Summary {
        target: target.name(),
        payments: settings.payments,
        seed: settings.seed,
        size: settings.size.to_string(),
        data_kind: settings.data_kind.name(),
        due,
        took: marks.latest.after,
        rates: [marks.rate(), marks.first_tenth(), marks.last_tenth()],
        acknowledged: load.tally.acknowledged(),
        errors: load.tally.errors(),
        retries: client.retries(),
        counted,
        listed: more(listed, listed_before)?,
        counters_exact,
        settled: settings.mixed.then_some(counted - opened),
        drain,
        latencies: load.workloads.iter().map(|load| (load.kind.name(), load.latency.quantiles())).collect(),
        write_units,
        peak_memory: process::memory_kib("VmHWM").ok().map(|kib| kib * 1_024),
        first_error: load.tally.first_error(),
    })
}
