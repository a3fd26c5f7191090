//! `cargo compare`: the throughput of the functions compared with that of bare loops of the same calls.
//!
//! Arguments select pairs, as in any benchmark: `cargo compare sweep`. `COMPARE_JSON` names a file for the results, and
//! `DATA_KIND` the kind of the payments' data, as `--data-kind` of `cargo load` does: criterion takes no options of ours.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput, measurement::WallTime};
use payments_allocator as _;
use payments_boot::Lookup;
use payments_compare::check::same_calls;
use payments_compare::fixture::Fixture;
use payments_compare::pair::Pair;
use payments_compare::round::Round;
use payments_compare::table::{Row, table};
use payments_load::process::{EngineProcess, served};
use payments_machine::payload::DataKind;
use tokio::runtime::{Builder, Runtime};

/// How often criterion measures a pair, after the warm-up.
const SAMPLES: usize = 20;

/// The duration of the warm-up.
const WARM_UP: Duration = Duration::from_secs(2);

/// The duration of the measurement.
const MEASURE: Duration = Duration::from_secs(10);

/// The setup of a pair.
struct Setup {
    fixture: Fixture,
    /// The rounds of each sample.
    rounds: Vec<Vec<Round>>,
    // Last, because the fixture uses it until it is dropped.
    _engine: EngineProcess,
}

fn main() -> Result<()> {
    if served()? {
        return Ok(());
    }
    // One thread, so that its processor time is that of the current side.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut criterion =
        Criterion::default().sample_size(SAMPLES).warm_up_time(WARM_UP).measurement_time(MEASURE).configure_from_args();
    let environment = Lookup::environment();
    let data_kind = environment.text("DATA_KIND").map_or_else(|| Ok(DataKind::default()), |kind| kind.parse())?;
    let mut group = criterion.benchmark_group("pairs");
    group.sampling_mode(SamplingMode::Flat);
    let (mut rows, mut failure) = (Vec::new(), None);
    for pair in Pair::ALL {
        match measure(&mut group, &runtime, pair, data_kind).with_context(|| pair.properties().name) {
            Ok(row) => rows.extend(row),
            Err(error) => failure = Some(error),
        }
    }
    group.finish();
    criterion.final_summary();
    println!("{}", table(&rows));
    if let Some(file) = environment.text("COMPARE_JSON") {
        std::fs::write(Path::new(&file), serde_json::to_string(&rows)?).with_context(|| file)?;
    }
    failure.map_or(Ok(()), Err)
}

/// Measures a pair, if the command line selects it.
fn measure(
    group: &mut BenchmarkGroup<'_, WallTime>,
    runtime: &Runtime,
    pair: Pair,
    data_kind: DataKind,
) -> Result<Option<Row>> {
    let (properties, mut setup) = (pair.properties(), None);
    let size = properties.size;
    group.throughput(Throughput::Elements(2 * size));
    let mut rounds = |iterations: u64| -> Result<Duration> {
        let setup = match &mut setup {
            Some(setup) => setup,
            empty @ None => empty.insert(open(runtime, pair, data_kind)?),
        };
        let mut sample = Vec::new();
        for _ in 0..iterations {
            sample.push(runtime.block_on(Round::of(pair, &setup.fixture, size))?);
        }
        let took = sample.iter().map(|round| round.took[0]).sum();
        setup.rounds.push(sample);
        Ok(took)
    };
    let mut failure = None;
    group.bench_function(properties.name, |bench| {
        bench.iter_custom(|iterations| {
            rounds(iterations).unwrap_or_else(|error| {
                failure.get_or_insert(error);
                Duration::from_secs(1)
            })
        });
    });
    if let Some(error) = failure {
        return Err(error);
    }
    let Some(mut setup) = setup else { return Ok(None) };
    // The first ones are the warm-up.
    let samples = setup.rounds.split_off(setup.rounds.len().saturating_sub(SAMPLES)).concat();
    ensure!(!samples.is_empty(), "nothing was measured");
    Ok(Some(Row::of(pair, size, &samples)))
}

/// Starts an engine for the pair, after a check that its two sides make the same calls.
fn open(runtime: &Runtime, pair: Pair, data_kind: DataKind) -> Result<Setup> {
    let engine = EngineProcess::start()?;
    runtime.block_on(same_calls(pair, engine.url(), data_kind, pair.properties().size))?;
    let engine = EngineProcess::start()?;
    let fixture = runtime.block_on(async {
        let fixture = Fixture::over(engine.url(), data_kind, None).await?;
        pair.begin(&fixture).await?;
        anyhow::Ok(fixture)
    })?;
    Ok(Setup { fixture, rounds: Vec::new(), _engine: engine })
}
