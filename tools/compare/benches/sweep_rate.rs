//! `cargo sweep-rate`: how fast one sweeper, unpaced, claims what has fallen due, where that is 10,000 payments
//! and where it is ten times as many. Other numbers can stand behind it.

use std::time::Instant;

use anyhow::{Result, ensure};
use payments_compare::bank::Bank;
use payments_load::process::{EngineProcess, served};

/// As in the load generator: the engine makes many small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many payments are due, one after another.
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
            let bank = Bank::over(engine.url(), None).await?;
            bank.fill(payments).await?;
            let began = Instant::now();
            let mut claimed = 0;
            while claimed < payments {
                let some = bank.sweep().await?;
                ensure!(some > 0, "the sweep stops at {claimed}");
                claimed += some;
            }
            anyhow::Ok(began.elapsed())
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
