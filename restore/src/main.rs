//! `cargo restore`: the command line.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::Client;
use clap::{Args, Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use payments_boot::{Clock, version};
use payments_model::{ShardCount, UtcSecond};
use payments_restore::{
    Change, Except, Line, Rebuild, Restored, Source, Told, begin, begin_lost, begin_restored, finish,
};
use payments_store::{Store, TableNames};

/// The payments of each change that are shown. `--json` shows all.
const EXAMPLES: u32 = 10;

/// Repeats, after a point-in-time restore of the tables, what happened since the restored instant.
///
/// In this order: begin, restore the tables, plan, apply until nothing is left to do, finish. Each step can be repeated, and goes on
/// where it was. docs/restore.md says when to run them. They call DynamoDB as the AWS CLI does, with the credentials and the region
/// of your environment.
#[derive(Debug, Parser)]
#[command(name = "cargo restore", bin_name = "cargo restore", version = version())]
struct Arguments {
    /// The hot table: before the restore the stack's, and from plan on the restored one.
    #[arg(long, value_name = "TABLE")]
    payments: String,

    /// The long-term table, or the restored one if that was restored, too.
    #[arg(long, value_name = "TABLE")]
    history: String,

    /// The table of the event log.
    #[arg(long, value_name = "TABLE")]
    log: String,

    /// Call the DynamoDB API at this URL instead of AWS.
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,

    #[command(subcommand)]
    step: Step,
}

#[derive(Debug, Subcommand)]
enum Step {
    /// Start: end the log's epoch. From then on nothing is counted; finish within 24 hours.
    Begin {
        /// The log's table was lost, and an empty one has taken its place.
        #[arg(long)]
        log_lost: bool,

        /// The log's table was restored to this instant.
        #[arg(long, value_name = "INSTANT", conflicts_with = "log_lost")]
        log_to: Option<UtcSecond>,
    },
    /// Show what apply would do. Changes nothing.
    Plan(Choices),
    /// Bring back what the log, the long-term table and the published reports know. Set the counters to what the tables hold.
    /// Run it again until it says "Nothing is left to do."
    Apply(Choices),
    /// End: begin the next epoch, with an event for each payment whose version is now lower than the log said, and count again.
    Finish {
        /// The stream that the hot table has now: its LatestStreamArn.
        #[arg(long, value_name = "ARN")]
        stream: String,

        /// The instant to which the hot table was restored, such as 2026-11-20T09:00:00Z.
        #[arg(long, value_name = "INSTANT", required_unless_present = "log_to")]
        to: Option<UtcSecond>,

        /// The instant to which the table of the log was restored.
        #[arg(long, value_name = "INSTANT")]
        log_to: Option<UtcSecond>,
    },
}

/// The options of plan and apply.
#[derive(Debug, Args)]
struct Choices {
    /// The instant to which the hot table was restored, such as 2026-11-20T09:00:00Z.
    #[arg(long, value_name = "INSTANT")]
    to: UtcSecond,

    /// The shards of the indexes: the stack's ReadShards.
    #[arg(long, value_name = "NUMBER")]
    shards: ShardCount,

    /// A copy of the bucket's folder reports, at least of what was written since an hour before that instant.
    #[arg(long, value_name = "FOLDER")]
    reports: PathBuf,

    /// Read the events from a copy of the bucket's folder journal, because the log was lost. What a restored log knows beyond the journal's end is
    /// read, too.
    #[arg(long, value_name = "FOLDER")]
    journal: Option<PathBuf>,

    /// Neither the log nor the journal can be read: bring back what the long-term table and the reports know.
    #[arg(long, conflicts_with = "journal")]
    no_log: bool,

    /// Leave out what a fault itself did: actor=client:NAME,from=INSTANT,to=INSTANT,type=payment.cancelled, or some of these: all that you give must be true. `type` is
    /// payment.scheduled, payment.amended or payment.cancelled; without it, all three are left out. Can be given several times. What was claimed or settled is never left out.
    #[arg(long = "except", value_name = "WHAT")]
    excepts: Vec<Except>,

    /// Let apply run although events are missing that nobody knows: you do what docs/restore.md says in "Without log and journal".
    #[arg(long)]
    accept_gaps: bool,

    /// Also list details without a head and without an event. Reads the whole long-term table, which takes hours.
    #[arg(long)]
    find_details: bool,

    /// The most payments that apply writes in a second. Each costs the table up to 1 write unit and its indexes up to 4.
    #[arg(long, value_name = "NUMBER", default_value_t = 500)]
    per_second: u32,

    /// Print a line of JSON for each change and finding, and one for all of it.
    #[arg(long)]
    json: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .init();
    let Arguments { payments, history, log, endpoint, step } = Arguments::parse();
    let client = client(endpoint.as_deref()).await?;
    let store = Store::new(client, TableNames { payments, history, log });
    match step {
        Step::Begin { log_lost, log_to } => {
            let now = Clock::system().now();
            let done = match log_to {
                _ if log_lost => begin_lost(&store, now).await?,
                Some(log_to) => begin_restored(&store, log_to, now).await?,
                None => begin(&store).await?,
            };
            println!("{done}");
        }
        Step::Plan(choices) => rebuild(store, choices, false).await?,
        Step::Apply(choices) => rebuild(store, choices, true).await?,
        Step::Finish { stream, to, log_to } => {
            let restored = Restored { stream, tables_to: to, log_to };
            let bar = bar()?;
            let clock = Clock::system();
            let progress = |compared, all| show(&bar, "compared", compared, all);
            let done = finish(&store, &restored, || clock.now(), progress).await?;
            bar.finish_and_clear();
            println!("{done}");
        }
    }
    Ok(())
}

#[cfg(feature = "aws")]
async fn client(endpoint: Option<&str>) -> Result<Client> {
    Ok(payments_boot::dynamodb(endpoint).await)
}

#[cfg(not(feature = "aws"))]
#[expect(clippy::unused_async, reason = "a client of AWS opens its connection")]
async fn client(endpoint: Option<&str>) -> Result<Client> {
    let endpoint =
        endpoint.context("this program is built without AWS's clients: give --endpoint, or use `cargo restore`")?;
    Ok(payments_boot::dynamodb_at(endpoint, "local"))
}

fn bar() -> Result<ProgressBar> {
    let style = ProgressStyle::with_template("  {msg} {bar:40.green} {human_pos:>9} of {human_len}")?;
    Ok(ProgressBar::new(0).with_style(style))
}

fn show(bar: &ProgressBar, what: &str, done: u64, all: u64) {
    bar.set_message(what.to_owned());
    bar.set_length(all);
    bar.set_position(done);
}

fn open(folder: &Path) -> Result<Arc<dyn ObjectStore>> {
    let files = LocalFileSystem::new_with_prefix(folder);
    Ok(Arc::new(files.with_context(|| format!("{} is no folder: copy the bucket's folder there, as step 5 of \"Come back from a restore\" in docs/restore-commands.md does", folder.display()))?))
}

async fn rebuild(store: Store, choices: Choices, is_apply: bool) -> Result<()> {
    let source = match &choices.journal {
        Some(folder) => Source::Journal(open(folder)?),
        None if choices.no_log => Source::Nowhere,
        None => Source::Log,
    };
    let rebuild = Rebuild {
        store,
        source,
        reports: open(&choices.reports)?,
        to: choices.to,
        shards: choices.shards,
        excepts: choices.excepts,
        accepts_gaps: choices.accept_gaps,
        finds_details: choices.find_details,
        per_second: choices.per_second,
        now: Clock::system().now(),
    };
    let (bar, shown) = (bar()?, RefCell::new(BTreeMap::<Change, u32>::new()));
    let line = |line: &Line| {
        if let Line::Change { change, .. } = line {
            let mut shown = shown.borrow_mut();
            let count = shown.entry(*change).or_default();
            *count += 1;
            if !choices.json && *count > EXAMPLES {
                return;
            }
        }
        let text = if choices.json { serde_json::to_string(line).unwrap_or_default() } else { line.to_string() };
        bar.suspend(|| println!("{text}"));
    };
    let told = Told { line, progress: |what: &str, done, all| show(&bar, what, done, all) };
    let outcome = if is_apply { rebuild.apply(&told).await? } else { rebuild.plan(&told).await? };
    bar.finish_and_clear();
    if choices.json {
        println!("{}", serde_json::to_string(&outcome)?)
    } else {
        print!("{outcome}")
    }
    Ok(())
}
