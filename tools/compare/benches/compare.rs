//! `cargo compare`: the functions beside bare loops of the calls they make, as ratios. Whatever stands behind it
//! chooses among the pairs, as of any benchmark: `cargo compare sweep`. With `COMPARE_JSON` set to the name of a
//! file, what was found is written there too.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput, measurement::WallTime};
use payments_boot::Lookup;
use payments_compare::Pair;
use payments_compare::bank::Bank;
use payments_compare::check::same_calls;
use payments_compare::round::Round;
use payments_compare::table::{Row, table};
use payments_load::process::{EngineProcess, served};
use tokio::runtime::{Builder, Runtime};

/// As in the load generator: the engine makes many small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many times criterion measures a pair, warming up aside.
const SAMPLES: usize = 20;

/// How long it is to warm up.
const WARM_UP: Duration = Duration::from_secs(2);

/// How long the handler is to be measured in all.
const MEASURE: Duration = Duration::from_secs(10);

/// A pair with all it needs.
struct Stand {
    bank: Bank,
    /// The rounds of each time that criterion measured.
    rounds: Vec<Vec<Round>>,
    // Last, because it ends what the others use.
    _engine: EngineProcess,
}

fn main() -> Result<()> {
    if served()? {
        return Ok(());
    }
    // One thread: what it spends is what the side under way spends.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut criterion =
        Criterion::default().sample_size(SAMPLES).warm_up_time(WARM_UP).measurement_time(MEASURE).configure_from_args();
    let mut group = criterion.benchmark_group("pairs");
    group.sampling_mode(SamplingMode::Flat);
    let (mut rows, mut failure) = (Vec::new(), None);
    for pair in Pair::ALL {
        match measure(&mut group, &runtime, pair).with_context(|| pair.name()) {
            Ok(row) => rows.extend(row),
            Err(error) => failure = Some(error),
        }
    }
    group.finish();
    criterion.final_summary();
    println!("{}", table(&rows));
    if let Some(file) = Lookup::environment().text("COMPARE_JSON") {
        std::fs::write(Path::new(&file), serde_json::to_string(&rows)?).with_context(|| file)?;
    }
    failure.map_or(Ok(()), Err)
}

/// Measures a pair, unless the command line asks for others.
fn measure(group: &mut BenchmarkGroup<'_, WallTime>, runtime: &Runtime, pair: Pair) -> Result<Option<Row>> {
    let (size, mut stand) = (pair.size(), None);
    group.throughput(Throughput::Elements(2 * size));
    let mut rounds = |iterations: u64| -> Result<Duration> {
        let stand = match &mut stand {
            Some(stand) => stand,
            empty @ None => empty.insert(open(runtime, pair)?),
        };
        let mut some = Vec::new();
        for _ in 0..iterations {
            some.push(runtime.block_on(Round::of(pair, &stand.bank, size))?);
        }
        let took = some.iter().map(|round| round.took[0]).sum();
        stand.rounds.push(some);
        Ok(took)
    };
    let mut failure = None;
    group.bench_function(pair.name(), |bench| {
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
    let Some(mut stand) = stand else { return Ok(None) };
    // What comes before the samples is the warming up.
    let samples = stand.rounds.split_off(stand.rounds.len().saturating_sub(SAMPLES)).concat();
    ensure!(!samples.is_empty(), "nothing was measured");
    Ok(Some(Row::of(pair, size, &samples)))
}

/// An engine of its own for the pair, after a look at whether its two sides make the same calls.
fn open(runtime: &Runtime, pair: Pair) -> Result<Stand> {
    let engine = EngineProcess::start()?;
    runtime.block_on(same_calls(pair, engine.url(), pair.size()))?;
    let engine = EngineProcess::start()?;
    let bank = runtime.block_on(async {
        let bank = Bank::over(engine.url(), None).await?;
        pair.begin(&bank).await?;
        anyhow::Ok(bank)
    })?;
    Ok(Stand { bank, rounds: Vec::new(), _engine: engine })
}
