//! The bill of an idle stack: the table in `docs/performance.md`, from what the schedules of the local system do on an
//! empty one, in the middle of a day. `UPDATE_DOCS=1` writes it.

use payments_tests::prelude::*;
use std::fmt::Write as _;

use chrono::{DateTime, TimeDelta, Timelike, Utc};
use payments_alarms::Alarm;
use payments_boot::Lookup;
use payments_machine::Handlers as _;
use payments_machine::Template;
use payments_machine::layers::record::{is_of_runs, write_units};
use payments_machine::schedule::{Schedule, ScheduleSpec};
use payments_model::DayCounts;
use payments_store::SAMPLE_EVERY;
use payments_tests::template;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/performance.md");

/// The shards of a deployed stack, and those of the one that is measured: the recount reads each for every date.
const SHARDS: u64 = 32;
const FEW_SHARDS: u16 = 2;

/// The days of a month.
const DAYS: u64 = 30;

// Prices of us-east-1 in millionths of a cent, as third parties quote them.
/// A dollar.
const DOLLAR: u64 = 100_000_000;
/// A client that gets tokens for itself, for a month.
const CLIENT: u64 = 6 * DOLLAR;
/// A secret for a month.
const SECRET: u64 = 40_000_000;
/// An invocation of a function, $0.20 a million, and of a schedule, $1 a million.
const INVOCATION: u64 = 20 + 100;
/// A GB of memory for a second, on arm64.
const GB_SECOND: u64 = 1_333;
/// Half a read unit: $0.155 a million units in the dearer table.
const HALF_READ_UNIT: u64 = 8;
/// A write unit: $0.78 a million in the dearer table.
const WRITE_UNIT: u64 = 78;
/// A call of SQS: $0.40 a million.
const CALL: u64 = 40;
/// 1,000 bytes of log: $0.50 a GB, 10^9 bytes.
const KILOBYTE_OF_LOG: u64 = 50;
/// A metric of an alarm for a month.
const ALARM_METRIC: u64 = DOLLAR / 10;
/// A metric of one's own for a month.
const METRIC: u64 = 3 * DOLLAR / 10;
/// A dashboard for a month.
const DASHBOARD: u64 = 3 * DOLLAR;

/// The samples of a day.
const DAY_SAMPLES: i32 = 288;

/// The longest time of an idle run, in thousandths of a second: a few calls on open connections.
const RUN_MILLIS: u64 = 250;

/// The bytes that Lambda logs of each invocation: the lines START, END and REPORT, and 26 bytes for each line.
const BYTES_OF_LAMBDA: u64 = 450;

/// Lambda keeps five pollers on an empty queue. Each waits 20 seconds for a message.
const POLLS_PER_DAY: u64 = 5 * 24 * 60 * 60 / 20;

/// The runs that are measured, a minute apart: `publish` puts the same outcome once in fifteen.
const RUNS: u64 = 15;

/// The use of [`RUNS`] idle runs.
#[derive(Default)]
struct Run {
    half_read_units: u64,
    write_units: u64,
    bytes: u64,
    metrics: BTreeSet<String>,
}

/// A line of the bill, in millionths of a cent.
struct Line {
    what: String,
    off: u64,
    on: u64,
}

/// Runs a schedule on an empty stack.
async fn run(world: &World, spec: &'static ScheduleSpec, all: &mut Run) -> Result<()> {
    world.passing()(TimeDelta::minutes(1));
    let deadline = world.now().as_chrono() + TimeDelta::minutes(15);
    let context = context(u64::try_from(deadline.timestamp_millis())?);
    let outcome = world.functions().scheduled(&spec.package, serde_json::from_str(&spec.input)?, context).await;
    outcome.map_err(anyhow::Error::msg).context(spec.name.as_str())?;
    let (reads, writes): (BTreeMap<_, _>, BTreeMap<_, _>) = world
        .recorder
        .take_capacity_use()
        .into_iter()
        .partition(|((operation, _), _)| operation.contains("Get") || operation == "Query");
    let others: Vec<_> = writes.keys().filter(|(_, place)| !is_of_runs(place)).collect();
    ensure!(others.is_empty(), "an idle run of {} writes: {others:?}", spec.name);
    let lines = world.outside.metrics.take();
    for line in &lines {
        let line: Value = serde_json::from_str(line)?;
        let named = line["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().context("no metrics")?.iter();
        all.metrics.extend(named.filter_map(|metric| metric["Name"].as_str().map(str::to_owned)));
    }
    all.bytes += u64::try_from(lines.iter().map(String::len).sum::<usize>())?;
    // Indexes are read shard by shard, tables are not.
    let times = |place: &str| if place.contains('/') { SHARDS / u64::from(FEW_SHARDS) } else { 1 };
    all.half_read_units += reads.iter().map(|((_, place), used)| used * times(place)).sum::<u64>();
    all.write_units += write_units(&writes);
    Ok(())
}

/// The times of a day at which a schedule is due.
fn times(spec: &'static ScheduleSpec) -> Result<Vec<DateTime<Utc>>> {
    let mut schedule = Schedule::new(spec, "Europe/London".parse()?)?;
    let midnight: DateTime<Utc> = "2026-11-20T00:00:00Z".parse()?;
    // A cron expression is due from its next time on.
    let _before = schedule.falls_due(midnight - TimeDelta::minutes(1));
    let minutes = (0..24 * 60).map(|minute| midnight + TimeDelta::minutes(minute));
    Ok(minutes.filter(|minute| schedule.falls_due(*minute)).collect())
}

/// Adds the samples of half a day, so that a run adds one to an item of mean size.
async fn half_a_day_of_samples(world: &World) -> Result<()> {
    let (store, noon) = (world.store().await, world.now());
    for slot in 1..=(DAY_SAMPLES / 2) {
        let at = noon.saturating_add(SAMPLE_EVERY * -slot);
        store.add_sample("2026-11-20".parse()?, at, &DayCounts::default()).await?;
    }
    drop(world.recorder.take_capacity_use());
    Ok(())
}

/// The numbers of metrics of alarms, and of mappings that have metrics.
fn series(template: &Value) -> Result<(usize, usize)> {
    let alarms: usize = Alarm::all(template)?.iter().map(|alarm| alarm.series().len()).sum();
    let resources = template["Resources"].as_object().context("no resources")?.values();
    let events =
        resources.flat_map(|it| it["Properties"]["Events"].as_object().into_iter().flat_map(|all| all.values()));
    let mappings = events.filter(|event| !event["Properties"]["MetricsConfig"].is_null()).count();
    Ok((alarms, mappings))
}

/// The lines of the bill.
async fn bill() -> Result<Vec<Line>> {
    let template = template()?;
    assert_eq!(template["Parameters"]["ReadShards"]["Default"], SHARDS);
    let world = World::with(|environment| environment.shards = FEW_SHARDS).await?;
    half_a_day_of_samples(&world).await?;
    let mut runs = 0;
    let mut half_read_units = 0;
    let mut units = 0;
    let mut bytes = 0;
    let mut gb_millis = 0;
    let mut hours: BTreeMap<(&str, String), BTreeSet<u32>> = BTreeMap::new();
    for spec in Template::ours()?.schedules() {
        let (mut used, times) = (Run::default(), times(spec)?);
        for _ in 0..RUNS {
            run(&world, spec, &mut used).await?;
        }
        let often = DAYS * u64::try_from(times.len())?;
        runs += often;
        half_read_units += often * used.half_read_units / RUNS;
        units += often * used.write_units / RUNS;
        bytes += often * (used.bytes / RUNS + BYTES_OF_LAMBDA);
        // Scheduled functions have 1,024 MB.
        gb_millis += often * RUN_MILLIS;
        for metric in used.metrics {
            hours.entry((spec.package.as_str(), metric)).or_default().extend(times.iter().map(Timelike::hour));
        }
    }
    let (metrics, metric_hours) = (hours.len(), hours.values().map(BTreeSet::len).sum::<usize>());
    let metric_hours = u64::try_from(metric_hours)?;
    let (alarms, mappings) = series(&template)?;
    let gb_seconds = gb_millis / 1_000;
    let polls = DAYS * POLLS_PER_DAY;
    let both = |what: String, cost: u64| Line { what, off: cost, on: cost };
    let monitored = |what: String, cost: u64| Line { what, off: 0, on: cost };
    Ok(vec![
        both("one machine client of Cognito: $6".to_owned(), CLIENT),
        both("the master secret of webhooks: $0.40".to_owned(), SECRET),
        both(format!("{} polls of the result queue, at $0.40 a million", thousands(polls)), polls * CALL),
        both(
            format!("{} scheduled runs, at $1.20 a million, of which publish has 43,200", thousands(runs)),
            runs * INVOCATION,
        ),
        both(
            format!("{} GB-seconds of them, {RUN_MILLIS} ms each at 1 GB, at $0.0000133", thousands(gb_seconds)),
            gb_seconds * GB_SECOND,
        ),
        both(
            format!("{} read units, at $0.155 a million", thousands(half_read_units / 2)),
            half_read_units * HALF_READ_UNIT,
        ),
        both(
            format!("{} write units, of the outcomes of runs, at $0.78 a million", thousands(units)),
            units * WRITE_UNIT,
        ),
        both(
            format!("some {} MB of log, at $0.50 a GB", (bytes + 5_000_000) / 10_000_000 * 10),
            bytes / 1_000 * KILOBYTE_OF_LOG,
        ),
        monitored(
            format!(
                "{metrics} metrics of idle functions, $0.30 a month each, sent in so few hours that they count as {}",
                metric_hours / 24
            ),
            metric_hours * METRIC / 24,
        ),
        monitored(format!("{mappings} metrics of mappings, $0.30 each"), u64::try_from(mappings)? * METRIC),
        monitored(format!("{alarms} metrics of alarms, $0.10 each"), u64::try_from(alarms)? * ALARM_METRIC),
        monitored("the dashboard: $3".to_owned(), DASHBOARD),
    ])
}

/// `648,000` for 648000.
fn thousands(number: u64) -> String {
    let text = number.to_string();
    let from_end = text.chars().rev().enumerate();
    let grouped =
        from_end.flat_map(|(place, digit)| (place > 0 && place % 3 == 0).then_some(',').into_iter().chain([digit]));
    grouped.collect::<String>().chars().rev().collect()
}

/// `1.23` for an amount in millionths of a cent.
fn dollars(amount: u64) -> String {
    let cents = (amount + 500_000) / 1_000_000;
    format!("{}.{:02}", cents / 100, cents % 100)
}

#[tokio::test]
async fn an_idle_dev_stack_costs_under_ten_dollars_a_month() -> Result<()> {
    let bill = bill().await?;
    let (off, on) = (bill.iter().map(|line| line.off).sum::<u64>(), bill.iter().map(|line| line.on).sum::<u64>());
    ensure!(off < 10 * DOLLAR, "an idle dev stack costs ${}", dollars(off));
    let mut table = "| a month of 30 days | `Monitoring=off` | `on` |\n|---|---|---|\n".to_owned();
    for Line { what, off, on } in &bill {
        writeln!(table, "| {what} | {} | {} |", dollars(*off), dollars(*on))?;
    }
    writeln!(table, "| **in all** | **${}** | **${}** |", dollars(off), dollars(on))?;
    let document = std::fs::read_to_string(PATH).context(PATH)?;
    let (before, rest) = document.split_once("<!-- idle-stack -->\n").context("no place for the bill")?;
    let (written, after) = rest.split_once("<!-- /idle-stack -->").context("no end of the bill")?;
    if Lookup::environment().text("UPDATE_DOCS").is_some() {
        std::fs::write(PATH, format!("{before}<!-- idle-stack -->\n{table}<!-- /idle-stack -->{after}"))?;
        return Ok(());
    }
    ensure!(written == table, "docs/performance.md has another bill; UPDATE_DOCS=1 writes it:\n{table}");
    Ok(())
}
