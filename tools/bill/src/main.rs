//! `cargo bill`: the cost of a month by service, for a workload that flags describe.

use std::io::{self, Write as _};

use anyhow::Result;
use clap::Parser;
use payments_allocator as _;
use payments_bill::{ASSUMPTIONS, Bill, Prices, Stage, Workload, cents};
use payments_boot::version;

/// Prints what a month costs on AWS, by service, in the months 1, 12 and 60.
///
/// Parts of a day are played on this machine, with the functions' own code on an embedded DynamoDB. The units, invocations,
/// calls, messages, files and lines of log that they take are recorded, scaled to the workload, and priced by
/// tools/bill/prices.csv. That takes up to a minute, and no network.
#[derive(Debug, Parser)]
#[command(name = "cargo bill", bin_name = "cargo bill", version = version(), after_help = EXAMPLES)]
struct Arguments {
    #[command(flatten)]
    workload: Workload,

    /// The stage, by the settings in samconfig.toml. `dev` is not monitored.
    #[arg(long, value_enum, default_value = "prod", value_name = "STAGE")]
    stage: Stage,
}

const EXAMPLES: &str = "\
Examples:
  cargo bill                                            two million payments of 8 KB a day in prod
  cargo bill --payments 0 --stage dev                   an idle stack of dev
  cargo bill --data-kind incompressible                 data that does not compress
  cargo bill --payments 20000 --feed 0 --bytes 500 --webhooks 2
                                                        20,000 small ones, one by one, with two webhooks
  cargo bill --amended 5 --cancelled 2                  amendments and cancels, in percent of the single ones";

fn main() -> Result<()> {
    let Arguments { workload, stage } = Arguments::parse();
    let bill = Bill::new(&workload.day()?, stage, stage == Stage::Prod)?;
    let mut out = io::stdout();
    writeln!(out, "{}", bill.table())?;
    if let Some(largest) = bill.largest(2) {
        writeln!(out, "Largest in month 60: {} {}, ${}.", largest.service, largest.name, cents(largest.costs[2]))?;
    }
    if let Some(date) = Prices::list()?.date() {
        writeln!(out, "Prices of us-east-1, as third parties quoted AWS's price list on {date}.")?;
    }
    writeln!(out, "{ASSUMPTIONS}")?;
    Ok(())
}
