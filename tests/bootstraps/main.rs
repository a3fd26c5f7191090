//! The deployed programs under Lambda's own emulator: each bootstrap must answer each event as its handler does
//! in process, to the byte. A bootstrap without a required variable must name it.
//!
//! Three things differ, each by a rule: the time in metrics and the order of failed messages
//! (`payments_tests::events::triggers`), and how Lambda's runtime words errors (`events::answered`). All else is equal:
//! the same code prepares the world, the variables are the template's, and the bootstrap's clock shows the simulated
//! time.

mod cold;
mod deployed;
mod events;

mod sandbox;
mod services;
mod starts;
mod tools;
mod trial;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use libtest_mimic::Arguments;

fn main() -> Result<ExitCode> {
    let Some(tools) = tools::Tools::find()? else {
        eprintln!("SKIPPED: the bootstraps under Lambda's emulator. {}", tools::WANTED);
        return Ok(ExitCode::SUCCESS);
    };
    if cold::measure(&tools)? {
        return Ok(ExitCode::SUCCESS);
    }
    let tools = Arc::new(tools);
    let mut trials = events::trials(&tools)?;
    trials.append(&mut starts::trials(&tools)?);
    Ok(libtest_mimic::run(&Arguments::from_args(), trials).exit_code())
}
