//! `cargo load`: the load generator's command line.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use payments_boot::Lookup;
use payments_load::settings::{BATCHES, MAX_BATCH, PATIENCE, SINGLES};
use payments_load::{BARS, Bank, Place, Progress, Settings, Size, run};
use payments_local::Recorder;
use payments_model::{BusinessDate, BusinessZone};

/// The engine is in this process, too, and makes a page of small allocations for each call: with the system's own
/// allocator they take a tenth of the whole time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Puts payments into a bank, says how fast that went, and asks the bank whether it has them all.
///
/// Without --local or --url the bank is in this process: the functions' own handlers over an embedded
/// DynamoDB, with the stream functions at work beside them. The status is 0 only if nothing is lost, nothing was
/// refused, and counters, list and recount say what was put in.
#[derive(Debug, Parser)]
#[command(name = "cargo load", bin_name = "cargo load", version, after_help = EXAMPLES)]
struct Arguments {
    /// How many payments to put in.
    #[arg(long, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_PAYMENTS))]
    payments: u64,

    /// The same seed makes the same payments.
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,

    /// How large a payment is as stored: 8k, a number of bytes, or mixed.
    #[arg(long, default_value = "8k", value_name = "SIZE")]
    size: Size,

    /// How many accounts pay.
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99_999))]
    accounts: u32,

    /// How many of a hundred payments the busiest hundredth of the accounts makes; 0 for all accounts alike.
    #[arg(long, default_value_t = 20, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    busiest: u8,

    /// Put payments in one by one, and not by batches of a hundred.
    #[arg(long)]
    single: bool,

    /// How many requests are under way at once: 4 batches or 32 single payments unless given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    concurrency: Option<u64>,

    /// How many payments a second; as many as go without it, but 556 with --mixed. With a rate, a request is
    /// timed from when it was due.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: Option<u32>,

    /// The day at once: a feed, single creates, lists, counts and look-ups beside it, and payments that are due
    /// today, so that they are swept, sent and settled meanwhile.
    #[arg(long)]
    mixed: bool,

    /// Start all of `cargo local` in this process, on free ports, and go through its HTTP API.
    #[arg(long, conflicts_with = "url")]
    local: bool,

    /// Go to the HTTP API at this URL.
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    url: Option<String>,

    /// The access token for --url; or put it into the environment variable PAYMENTS_TOKEN.
    #[arg(long, value_name = "TOKEN", requires = "url")]
    token: Option<String>,

    /// Keep the bank's data in this folder. In process without it, a temporary folder is used, at TMPDIR.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// The date on which payments are due; tomorrow without it, or today with --mixed.
    #[arg(long, value_name = "DATE")]
    due: Option<BusinessDate>,

    /// The bank's time zone, which decides what "today" is.
    #[arg(long, default_value = "Europe/London", value_name = "ZONE")]
    time_zone: BusinessZone,

    /// Do not count write units. They are counted in process only, where each call is read for it.
    #[arg(long)]
    no_units: bool,

    /// How many seconds to wait for counters that do not move.
    #[arg(long, default_value_t = PATIENCE, value_name = "SECONDS")]
    patience: u32,

    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// The most payments of one load: as many as two days bring.
const MAX_PAYMENTS: u64 = 4_000_000;

const EXAMPLES: &str = "\
Examples:
  cargo load --payments 20000 --json                  in process, nothing else running
  TMPDIR=/dev/shm cargo load --payments 1000000       a million, with 11 GB of data in memory (Linux)
  cargo load --mixed --payments 20000                 half a minute of a whole day's traffic
  cargo load --local --single --rate 200              over HTTP, one by one, 200 a second
  cargo load --url https://… --due 2027-03-01         a deployed API, with a token in PAYMENTS_TOKEN

With DYNAMODB_ENDPOINT set, that engine is used instead of the embedded one. RUST_LOG sets what is logged
(error by default).";

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "error,dynoxide=off".into());
    let log = tracing_subscriber::fmt().with_env_filter(filter).compact();
    log.with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal()).init();
    let (settings, json) = (settings(&arguments), arguments.json);
    let bank = bank(arguments).await?;
    let progress = if json { Progress::hidden() } else { Progress::on_stderr(settings.payments, &BARS) }?;
    let found = run(&settings, &bank, &progress).await;
    progress.clear();
    bank.close().await?;
    let summary = found?;
    if json {
        println!("{}", summary.json());
    } else {
        println!("{summary}");
    }
    summary.check()
}

fn settings(arguments: &Arguments) -> Settings {
    let (batch, concurrency) = if arguments.single { (1, SINGLES) } else { (MAX_BATCH, BATCHES) };
    Settings {
        payments: arguments.payments,
        seed: arguments.seed,
        size: arguments.size,
        accounts: arguments.accounts,
        busiest: arguments.busiest,
        batch,
        concurrency: arguments.concurrency.unwrap_or(concurrency),
        rate: arguments.rate,
        mixed: arguments.mixed,
        due: arguments.due,
        zone: arguments.time_zone,
        patience: Duration::from_secs(arguments.patience.into()),
    }
}

async fn bank(arguments: Arguments) -> Result<Bank> {
    let environment = Lookup::environment();
    let Arguments { local, url, token, data, time_zone, no_units, .. } = arguments;
    if let Some(url) = url {
        let token = token.or_else(|| environment.text("PAYMENTS_TOKEN"));
        return Bank::at(&url, token.as_deref());
    }
    let place = Place { data, endpoint: environment.text("DYNAMODB_ENDPOINT") };
    if local {
        return Bank::local(&place, time_zone).await;
    }
    let wire = (!no_units).then(Recorder::new);
    Bank::in_process(&place, time_zone, wire).await
}
