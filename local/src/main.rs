//! `cargo local`: the whole system on one machine.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::{Parser, Subcommand};
use payments_allocator as _;
use payments_boot::{Clock, Lookup, log_filter, version};
use payments_local::business_days::{Dates, Parameters};
use payments_local::demo::{self, Progress};
use payments_local::listen::{self, Listener};
use payments_local::sandbox::CLOCK_PATH;
use payments_local::signals::{LONGEST_STOP, Signals};
use payments_local::{Options, System, welcome};
use payments_machine::payload::DataKind;
use payments_model::{BusinessZone, DayLimit};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Runs the whole system on this machine: the HTTP API, the functions and an embedded DynamoDB.
///
/// If the environment variable DYNAMODB_ENDPOINT is set, that engine is used instead of the embedded one.
/// RUST_LOG sets the log level (info by default).
#[derive(Debug, Parser)]
#[command(name = "cargo local", bin_name = "cargo local", version = version(), args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    /// The port of the HTTP API; 0 chooses any free one and prints it.
    #[arg(long, default_value_t = 8080, value_name = "PORT")]
    api_port: u16,

    /// The port of the DynamoDB API; 0 chooses any free one and prints it.
    #[arg(long, default_value_t = 8000, value_name = "PORT")]
    dynamodb_port: u16,

    /// Keep the data in this folder; without it the data is lost at the end.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Begin a new bank although the database is missing or empty and there are reports or a journal.
    #[arg(long, requires = "data")]
    new_bank: bool,

    /// Keep the reports and the journal in this folder; without it they are in the folder of the data, or in a new
    /// temporary folder, which is printed.
    #[arg(long, value_name = "DIR")]
    reports: Option<PathBuf>,

    /// The bank's time zone, which decides what "today" is.
    #[arg(long, default_value = "Europe/London", value_name = "ZONE")]
    time_zone: BusinessZone,

    #[command(flatten)]
    dates: Dates,

    /// Pause sending, or sending and settling: the stack's `Paused`.
    #[arg(long, value_name = "PART", default_value = "none", value_parser = part)]
    paused: &'static str,

    /// The most that is claimed of a due date, such as payments=1000: the stack's `MaxDay`.
    #[arg(long, value_name = "LIMIT")]
    max_day: Option<DayLimit>,

    /// Require an access token with every request, as a deployed API does, and start an issuer; without it every
    /// request is allowed that this machine sends, but for changes by pages of other sites. Functions are invoked by hand without one.
    #[arg(long)]
    require_tokens: bool,

    /// References choose how payments end, and POST /sandbox/clock moves the clock: for tests of
    /// clients. See docs/integrate.md.
    #[arg(long, conflicts_with = "data")]
    sandbox: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Simulates one banking day and the night after it on a fast clock, and prints a summary. It always uses an
    /// embedded DynamoDB in memory.
    Demo {
        /// The number of payments to create.
        #[arg(long, default_value_t = 1_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_PAYMENTS))]
        payments: u64,

        /// The same seed makes the same day.
        #[arg(long, default_value_t = 1, value_name = "S")]
        seed: u64,

        /// The kind of the payments' data.
        #[arg(long, value_enum, default_value_t, value_name = "KIND")]
        data_kind: DataKind,

        /// Keep the reports and the journal in this folder; without it in a new temporary folder, which is printed.
        #[arg(long, value_name = "DIR")]
        reports: Option<PathBuf>,

        /// Print one JSON object instead of a table.
        #[arg(long)]
        json: bool,
    },
    /// Shows the events of a running bank, and forwards them to a program that you write.
    ///
    /// Creates a webhook endpoint at the bank, verifies each message, prints its events, sends it on with its original
    /// headers, and answers the bank with the program's status. If the program does not answer, the bank gets 502, and
    /// tries again. Ctrl-C deletes the endpoint.
    #[command(after_help = LISTEN_EXAMPLES)]
    Listen {
        /// The URL of your program; without it, each message is shown and accepted.
        #[arg(long, value_name = "URL")]
        forward_to: Option<String>,

        /// The URL of the bank.
        #[arg(long, default_value = "http://127.0.0.1:8080", value_name = "URL")]
        bank: String,

        /// The access token, if the bank requires one: a machine's, with the scope payments/webhooks.
        #[arg(long, value_name = "TOKEN")]
        token: Option<String>,

        /// Of the events of status changes, only those of this type; can be given several times.
        #[arg(long = "type", value_name = "TYPE")]
        types: Vec<String>,

        /// Of the events that name an account, only those of this one; can be given several times.
        #[arg(long = "account", value_name = "ID")]
        accounts: Vec<String>,
    },
    /// Checks a stack's parameters of business days, as its functions do when they start. Deploy them only if it accepts them.
    BusinessDays(Parameters),
}

const LISTEN_EXAMPLES: &str = "Examples:
  cargo local --sandbox                                              # a bank, in another terminal
  cargo local listen                                                 # shows its events
  cargo local listen --forward-to http://127.0.0.1:3000/hooks
  cargo local listen --forward-to http://127.0.0.1:3000/hooks --type payment.failed --account acc-1";

/// The most payments of a demo. All are in memory, where 10,000 took 224 MB.
const MAX_PAYMENTS: u64 = 1_000_000;

/// The status of a process that Ctrl-C ended: 128 and the signal's number.
const INTERRUPTED: i32 = 130;

/// The default log level. The engine warns of every condition that fails, which is normal here.
const DEFAULT_LOG: &str = "info,dynoxide=error,aws_smithy_runtime::client::http::connection_poisoning=off";

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let default = if arguments.command.is_some() { "error" } else { DEFAULT_LOG };
    let registry = tracing_subscriber::registry().with(log_filter(default));
    let log = tracing_subscriber::fmt::layer().compact();
    match arguments.command {
        Some(Command::Demo { payments, seed, data_kind, reports, json }) => {
            let log = log.with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
            registry.with(log).init();
            play(&demo::Settings { payments, seed, data_bytes: None, data_kind }, reports, json).await
        }
        Some(Command::Listen { forward_to, bank, token, types, accounts }) => {
            registry.with(log.with_writer(std::io::stderr)).init();
            let [types, accounts] = [types, accounts].map(|all| all.into_iter().collect());
            hear(&listen::Settings { bank, forward_to, token, types, accounts }).await
        }
        Some(Command::BusinessDays(parameters)) => {
            println!("{}", parameters.check(Clock::system().now())?);
            Ok(())
        }
        None => {
            registry.with(log.with_ansi(std::io::stdout().is_terminal())).init();
            serve(arguments).await
        }
    }
}

async fn play(settings: &demo::Settings, reports: Option<PathBuf>, json: bool) -> Result<()> {
    let reports = reports.map_or_else(new_folder, Ok)?;
    let progress = if json { Progress::hidden() } else { Progress::whole_on_stderr(demo::steps(settings.payments)) }?;
    let summary = demo::run(settings, &reports, &progress).await?;
    if json {
        println!("{}", summary.json());
    } else {
        println!("{summary}");
    }
    summary.check()
}

/// Prints a line. Without a reader of the output, the listener still forwards, and deletes its endpoint at the end.
fn say(line: &str) {
    let mut out = std::io::stdout();
    drop(writeln!(out, "{line}").and_then(|()| out.flush()));
}

async fn hear(settings: &listen::Settings) -> Result<()> {
    let mut signals = Signals::with_hangup()?;
    let mut listener = Listener::open(settings, &Clock::system(), say).await?;
    let begun = tokio::select! {
        begun = listener.begin() => begun.map(|()| true),
        // The bank may not answer, and may have made the endpoint.
        signal = signals.next() => signal.map(|()| false).map_err(Into::into),
    };
    if matches!(begun, Ok(true)) {
        signals.next().await?;
    }
    if begun.is_ok() {
        say(&format!("\nDeleting the endpoint {}. Ctrl-C leaves it at the bank.", listener.endpoint()));
    }
    let stopped = signals.end(listener.stop()).await?;
    // The reason why it did not begin counts more.
    begun.and_then(|_| stopped.context("the endpoint is still at the bank")?)
}

/// Creates a temporary folder that stays after this process.
fn new_folder() -> Result<PathBuf> {
    Ok(tempfile::Builder::new().prefix("payment-reports-").tempdir()?.keep())
}

/// The part of the bank that a pause names.
fn part(text: &str) -> Result<&'static str, &'static str> {
    let part = ["none", "sending", "settling"].into_iter().find(|part| *part == text);
    part.ok_or("it has to be none, sending or settling")
}

async fn serve(arguments: Arguments) -> Result<()> {
    let endpoint = Lookup::environment().text("DYNAMODB_ENDPOINT");
    if let Some(endpoint) = endpoint.as_ref().filter(|url| !url.starts_with("http://")) {
        bail!("DYNAMODB_ENDPOINT is {endpoint:?}; set it to a URL without TLS, such as http://127.0.0.1:8001");
    }
    let Arguments {
        command: _,
        api_port,
        dynamodb_port,
        data,
        new_bank,
        reports,
        time_zone,
        dates,
        paused,
        max_day,
        require_tokens,
        sandbox,
    } = arguments;
    if sandbox && endpoint.is_some() {
        bail!("--sandbox needs the embedded engine, because its clock starts anew; unset DYNAMODB_ENDPOINT");
    }
    let beside_data = data.as_ref().map(|folder| folder.join("reports"));
    let reports = reports.or(beside_data).map_or_else(new_folder, Ok)?;
    let kept = match (&endpoint, &data) {
        (Some(_), _) => "(another engine, from DYNAMODB_ENDPOINT)".to_owned(),
        (None, Some(folder)) => format!("(kept in {})", folder.display()),
        (None, None) if sandbox => "(in memory)".to_owned(),
        (None, None) => "(in memory; --data DIR keeps it)".to_owned(),
    };
    let clock = Clock::system();
    let shown = reports.display().to_string();
    let options = Options {
        api_port,
        dynamodb_port,
        data,
        new_bank,
        reports,
        time_zone,
        dates,
        paused,
        max_day,
        endpoint,
        require_tokens,
        sandbox,
    };
    let mut signals = Signals::listen()?;
    let system = tokio::select! {
        started = System::start(&options, &clock) => started?,
        signal = signals.next() => return signal.map_err(Into::into),
    };
    let today = time_zone.date_of(clock.now());
    let welcome = welcome::text(&system.api_url(), system.dynamodb_url(), &kept, &shown, today)?;
    if sandbox {
        println!(
            "Move the clock: curl {}{CLOCK_PATH} -d '{{\"advanceSeconds\":3600}}'. See docs/integrate.md.\n",
            system.api_url()
        );
    }
    println!("{}\n", if require_tokens { welcome::with_tokens(&welcome, &system.api_url()) } else { welcome });
    signals.next().await?;
    stop(system, signals).await
}

/// Stops after the work under way, or at once if a signal comes meanwhile.
async fn stop(system: System, mut signals: Signals) -> Result<()> {
    println!(
        "\nStopping after the work under way, which takes at most {} seconds. Ctrl-C stops at once.",
        LONGEST_STOP.as_secs()
    );
    match signals.end(system.stop()).await? {
        Some(stopped) => stopped,
        None => {
            println!("\nStopped in the middle of the work.");
            std::process::exit(INTERRUPTED)
        }
    }
}
