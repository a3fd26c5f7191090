//! `cargo month`: the simulated month's command line.

use std::process::ExitCode;

use anyhow::Result;
use chrono::{DateTime, Utc};
use clap::Parser;
use payments_month::{Month, Outage, Raised, Settings, Weakness, play};

/// Plays simulated months, and checks every guarantee in each.
///
/// A month has one seed, and the same seed always plays the same month. The exit status is 0 only if no guarantee was
/// broken.
#[derive(Debug, Parser)]
#[command(name = "cargo month", bin_name = "cargo month", version)]
struct Arguments {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// How many seeds are played, one after another.
    #[arg(long, default_value_t = 1)]
    seeds: u64,

    /// How many days have payments. What was begun comes to its end after them.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=60))]
    days: u32,

    /// How many payments a day has.
    #[arg(long, default_value_t = 60)]
    payments: usize,

    /// Play without faults.
    #[arg(long)]
    healthy: bool,

    /// Take something out of the functions' calls, to see that it is missed.
    #[arg(long)]
    weakness: Option<Weakness>,

    /// Let something break on the second day, until an operator ends it as the runbook says. Several outages begin three
    /// hours apart.
    #[arg(long, value_delimiter = ',')]
    outage: Vec<Outage>,

    /// Print one JSON object for each month.
    #[arg(long)]
    json: bool,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let outages: &'static [Outage] = arguments.outage.clone().leak();
    let mut broken = false;
    for seed in arguments.seed..arguments.seed.saturating_add(arguments.seeds) {
        let settings = Settings {
            seed,
            days: arguments.days,
            payments: arguments.payments,
            faults: !arguments.healthy,
            weakness: arguments.weakness,
            outages,
        };
        let month = play(&settings)?;
        broken |= !month.violations.is_empty();
        if arguments.json {
            println!("{}", serde_json::to_string(&month)?);
        } else {
            show(&month, &settings);
        }
    }
    Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn show(month: &Month, settings: &Settings) {
    let ends: Vec<String> = month.ends.iter().map(|(status, count)| format!("{count} {status}")).collect();
    println!("seed {}: {} payments asked for; {}", month.seed, month.asked, ends.join(", "));
    let faults: Vec<String> = month.faults.iter().map(|(kind, count)| format!("{kind:?} {count}")).collect();
    println!("  faults      {}", faults.join(", "));
    println!("  requests    {}; {} invocations failed and were made again", month.requests, month.troubles);
    for (alarm, times) in &month.alarms {
        let times: Vec<String> = times.iter().map(shown).collect();
        println!("  alarm       {alarm}: {}", times.join(", "));
    }
    for (outage, began) in &month.outages {
        println!("  outage      {outage:?} at {}", began.format("%F %H:%M"));
    }
    println!("  trace       {}, in {} ms", month.trace, month.took_ms);
    if month.violations.is_empty() {
        println!("  guarantees  all hold");
        return;
    }
    for violation in month.violations.iter().take(10) {
        println!("  BROKEN      {violation}");
    }
    println!("  {} are broken. To see it again:", month.violations.len());
    println!("  cargo month --seed {} --days {} --payments {}", month.seed, settings.days, settings.payments);
}

/// Shows when an alarm was on.
fn shown(raised: &Raised) -> String {
    let at = |at: DateTime<Utc>| at.format("%F %H:%M").to_string();
    format!("{} to {}", at(raised.from), raised.to.map_or_else(|| "the end".to_owned(), at))
}
