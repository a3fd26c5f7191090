//! `cargo sweep-rate`: how fast one sweeper without a pace claims 10,000 due payments, and ten times as many. Arguments
//! are other numbers of payments.

use std::time::Instant;

use anyhow::{Result, ensure};
use payments_allocator as _;
use payments_compare::fixture::Fixture;
use payments_load::process::{EngineProcess, served};
use payments_machine::payload::DataKind;

/// The numbers of due payments.
const PAYMENTS: [u64; 2] = [10_000, 100_000];

fn main() -> Result<()> {
    if served()? {
        return Ok(());
    }
    let given: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!("| due | seconds | claims a second | µs each |\n|---|---|---|---|");
    for payments in if given.is_empty() { PAYMENTS.to_vec() } else { given } {
        let engine = EngineProcess::start()?;
        let took = runtime.block_on(async {
            let fixture = Fixture::over(engine.url(), DataKind::default(), None).await?;
            fixture.fill(payments).await?;
            let start = Instant::now();
            let mut claimed = 0;
            while claimed < payments {
                let more = fixture.sweep().await?;
                ensure!(more > 0, "the sweep stops at {claimed}");
                claimed += more;
            }
            anyhow::Ok(start.elapsed())
        })?;
        let nanos = took.as_nanos().max(1);
        let (seconds, rate) = (took.as_millis() / 1_000, u128::from(payments) * 1_000_000_000 / nanos);
        println!(
            "| {payments} | {seconds}.{:03} | {rate} | {} |",
            took.as_millis() % 1_000,
            nanos / u128::from(payments) / 1_000
        );
    }
    Ok(())
}
