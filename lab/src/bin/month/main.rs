//! `cargo month`: the simulated month's command line.

mod arguments;
mod each;
mod find;
mod play;
mod show;

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Parser as _;
use payments_allocator as _;
use payments_lab::{Month, Outage, SEEDS, Settings, shrink};

use crate::arguments::Arguments;
use crate::find::find_weaknesses;
use crate::play::{missing, play_all};
use crate::show::{command, tell};

fn main() -> Result<ExitCode> {
    match run(&Arguments::parse()) {
        // Nobody reads on, as with `cargo month | head`.
        Err(error) if error.downcast_ref::<io::Error>().is_some_and(|it| it.kind() == io::ErrorKind::BrokenPipe) => {
            Ok(ExitCode::FAILURE)
        }
        result => result,
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(file) = &arguments.find_weaknesses {
        return find_weaknesses(arguments, file);
    }
    let distinct: BTreeSet<&Outage> = arguments.outage.iter().collect();
    ensure!(distinct.len() == arguments.outage.len(), "an outage is named twice: name each once");
    let months = play_all(arguments)?;
    let broken: Vec<&Month> = months.iter().filter(|month| !month.violations.is_empty()).collect();
    if months.len() > 1 && !arguments.json {
        writeln!(io::stdout(), "{} months, {} of them with a broken guarantee", months.len(), broken.len())?;
    }
    let missing = missing(arguments, &months);
    if !missing.is_empty() {
        eprintln!("no month had these kinds of faults or amendments: {}", missing.join(", "));
    }
    if arguments.shrink && broken.is_empty() {
        eprintln!("there is nothing to make smaller: every guarantee holds");
    }
    if let Some(first) = broken.first().filter(|_| arguments.shrink) {
        let watch = |smaller: &Settings| eprintln!("  trying {}", command(smaller));
        let (smaller, month) = shrink(&arguments.settings(first.seed), (*first).clone(), watch)?;
        if !arguments.json {
            writeln!(io::stdout(), "a smaller month that breaks the same guarantee:")?;
        }
        tell(arguments.json, &month, &smaller)?;
    }
    if let Some(weakness) = arguments.weakness {
        let name = weakness.name();
        if broken.is_empty() {
            eprintln!("weakness {name} was not found. Try more seeds: --seeds {SEEDS}");
            return Ok(ExitCode::FAILURE);
        }
        eprintln!("weakness {name} was found in {} of {} months, as it must be", broken.len(), months.len());
        return Ok(ExitCode::SUCCESS);
    }
    Ok(if broken.is_empty() && missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
