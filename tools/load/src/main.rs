//! `cargo load`: the load generator's command line.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use payments_allocator as _;
use payments_boot::{Lookup, log_filter, version};
use payments_load::{BARS, Progress, Settings, Target, run};
use payments_machine::{EngineChoice, Recorder};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Creates payments, prints how fast that was, and checks that none is lost.
///
/// Without --local or --url everything is in this process: the functions' handlers over an embedded DynamoDB, and
/// the stream functions beside them. The exit status is 0 only if no payment is lost, no request failed, and the
/// counters, the list and a recount agree with what was created.
#[derive(Debug, Parser)]
#[command(name = "cargo load", bin_name = "cargo load", version = version(), after_help = EXAMPLES)]
struct Arguments {
    #[command(flatten)]
    settings: Settings,

    /// Start all of `cargo local` in this process, on free ports, and send the load to its HTTP API.
    #[arg(long, conflicts_with = "url")]
    local: bool,

    /// Send the load to the HTTP API at this URL.
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    url: Option<String>,

    /// The access token for --url. The environment variable PAYMENTS_TOKEN can hold it instead.
    #[arg(long, value_name = "TOKEN", requires = "url")]
    token: Option<String>,

    /// Keep the data in this folder. The default in process is a temporary folder, in TMPDIR.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Do not count write units. They are counted only in process, where each response is parsed for it.
    #[arg(long)]
    no_units: bool,

    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  cargo load --payments 20000 --json                  in process
  TMPDIR=/dev/shm cargo load --payments 1000000       a million, with 6.5 GB of data in memory (Linux)
  cargo load --mixed --payments 20000                 half a minute of a whole day's traffic
  cargo load --local --single --rate 200              over HTTP, one by one, 200 a second
  cargo load --url https://… --due 2027-03-01         a deployed API, with a token in PAYMENTS_TOKEN

If DYNAMODB_ENDPOINT is set, that engine is used instead of the embedded one. RUST_LOG sets what is logged
(error by default).";

#[tokio::main]
async fn main() -> Result<()> {
    let Arguments { settings, local, url, token, data, no_units, json } = Arguments::parse();
    let log = tracing_subscriber::fmt::layer().compact();
    let log = log.with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    tracing_subscriber::registry().with(log_filter("error,dynoxide=off")).with(log).init();

    let environment = Lookup::environment();
    let engine = EngineChoice::new(environment.text("DYNAMODB_ENDPOINT"), data);
    let target = match url {
        Some(url) => Target::at(&url, token.or_else(|| environment.text("PAYMENTS_TOKEN")).as_deref())?,
        None if local => Target::local(engine, settings.time_zone).await?,
        None => Target::in_process(engine, settings.time_zone, (!no_units).then(Recorder::new)).await?,
    };
    let progress = if json { Progress::hidden() } else { Progress::on_stderr(settings.payments, &BARS) }?;
    let summary = run(&settings, &target, &progress).await;
    progress.clear();
    target.close().await?;
    let summary = summary?;
    if json {
        println!("{}", summary.json());
    } else {
        println!("{summary}");
    }
    summary.check()
}
