//! `cargo console-views`: how long the console's views take over 10,000 due payments and over a million.
//!
//! Arguments are other numbers of payments.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use payments_allocator as _;
use payments_compare::fixture::Fixture;
use payments_load::process::{EngineProcess, served};
use payments_machine::payload::DataKind;

/// The numbers of due payments.
const PAYMENTS: [u64; 2] = [10_000, 1_000_000];

/// How many payments are put at a time.
const AT_A_TIME: u64 = 50_000;

/// The views that read by date or across shards. The second list is of a date whose payments are all there.
const VIEWS: [&str; 4] = ["day", "ahead", "waiting", "list?date=2026-11-20&status=SCHEDULED"];

/// How often each view is asked for.
const TIMES: usize = 101;

fn main() -> Result<()> {
    if served()? {
        return Ok(());
    }
    let given: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let given = if given.is_empty() { PAYMENTS.to_vec() } else { given };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut first: Option<Vec<Duration>> = None;
    println!("| due | view | ms, median | ms, most | times that of {} |\n|---|---|---|---|---|", given[0]);
    for payments in given {
        let engine = EngineProcess::start()?;
        let took = runtime.block_on(measured(engine.url(), payments))?;
        let medians: Vec<_> = took.iter().map(|(median, _)| *median).collect();
        let base = first.get_or_insert_with(|| medians.clone());
        for ((view, (median, most)), base) in VIEWS.iter().zip(took).zip(base) {
            let view = view.split('?').next().unwrap_or(view);
            let tenths = median.as_nanos() * 10 / base.as_nanos().max(1);
            println!(
                "| {payments} | {view} | {} | {} | {}.{} |",
                millis(median),
                millis(most),
                tenths / 10,
                tenths % 10
            );
        }
    }
    Ok(())
}

/// The median and the longest time of each view, over so many due payments.
async fn measured(url: &str, payments: u64) -> Result<Vec<(Duration, Duration)>> {
    let fixture = Fixture::over(url, DataKind::default(), None).await?;
    let mut left = payments;
    while left > 0 {
        let some = left.min(AT_A_TIME);
        fixture.fill(some).await?;
        left -= some;
    }
    fixture.count(payments).await?;
    let mut medians = Vec::new();
    for view in VIEWS {
        let mut took = Vec::new();
        for _ in 0..TIMES {
            let began = Instant::now();
            fixture.show(view).await.with_context(|| view)?;
            took.push(began.elapsed());
        }
        took.sort_unstable();
        medians.push((took[TIMES / 2], took[TIMES - 1]));
    }
    Ok(medians)
}

fn millis(time: Duration) -> String {
    format!("{}.{:02}", time.as_millis(), time.as_micros() % 1_000 / 10)
}
