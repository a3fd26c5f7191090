//! Runs the checks of checks.txt against the Rust client, with the variables that .ci/try-clients.sh sets.

mod batches;
mod broken;
mod endpoints;
mod fake;
mod lists;
mod numbers;
mod payments;
mod retries;
mod suite;
mod tokens;
mod world;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let world = world::World::from_environment()?;
    let checks = [
        batches::CHECKS,
        broken::CHECKS,
        endpoints::CHECKS,
        lists::CHECKS,
        numbers::CHECKS,
        payments::CHECKS,
        retries::CHECKS,
        tokens::CHECKS,
    ]
    .concat();
    let failed = suite::run(&checks, &world).await?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
