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
use payments_restore::stages::{
    Allowed, Start, before_begin, before_files, before_finish, cancels, changes, clients, endpoints, ensure_closed,
    ensure_ended, ensure_usable, files, import, lost, published, start, stream, tables, template, told,
};
use payments_restore::{
    Call, Change, Except, Line, Note, Origin, Rebuild, Restored, Runner, Source, StackNow, Told, begin, begin_lost,
    begin_restored, finish,
};
use payments_store::{LogStage, Store, TableNames};

/// The payments of each change that are shown. `--json` shows all.
const EXAMPLES: u32 = 10;

/// Brings a stack back after a loss of its tables, in the order of these commands.
///
/// Each command prints its steps: what is done, what is to do with which command line, and what is asked afterwards. It changes
/// nothing unless you give --apply. A step is refused if the world is not as it needs it, and says what to do. A command that was
/// cut off goes on where it was: run it again. docs/restore.md says when to run which. The commands call the AWS CLI, and use the
/// credentials and the region of your environment.
///
/// For example: cargo restore start --stack payments-prod --to 2026-11-20T09:00:00Z
#[derive(Debug, Parser)]
#[command(name = "cargo restore", bin_name = "cargo restore", version = version())]
struct Arguments {
    /// The restore's file, which start writes and the other commands read.
    #[arg(long, value_name = "FILE", default_value = "restore.json", global = true)]
    file: PathBuf,

    /// Do it. Without this, the steps are only shown.
    #[arg(long, global = true)]
    apply: bool,

    /// Call the DynamoDB API at this URL instead of AWS. The AWS CLI takes it from AWS_ENDPOINT_URL.
    #[arg(long, value_name = "URL", global = true)]
    endpoint: Option<String>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Note what is restored, and to when, in the restore's file.
    ///
    /// For example: cargo restore start --stack payments-prod --to 2026-11-20T09:00:00Z --history --apply
    Start(Start),
    /// Close the API for creates, amendments and cancels. The stack must be paused as far as settling.
    ///
    /// For example: cargo restore close --apply
    Close,
    /// End the log's epoch: from then on nothing is counted, so finish within 24 hours. Publish until the journal is at its end.
    ///
    /// A log that is restored or empty is begun in its new table: run tables first.
    ///
    /// For example: cargo restore begin --apply
    Begin {
        /// End the epoch of the damaged log in its old table, which can still be written.
        #[arg(long)]
        old: bool,

        /// Do not wait until the old hot table's stream is counted, because the table is gone or has lost its stream.
        #[arg(long)]
        uncounted: bool,
    },
    /// Restore the tables, with the settings of the template. The stream of the hot table stays off.
    ///
    /// For example: cargo restore tables --apply
    Tables,
    /// Disable the webhook endpoints of a restored long-term table: a deleted one would get events again.
    ///
    /// For example: cargo restore endpoints --apply
    Endpoints,
    /// Copy the reports that were published since, and the journal if the log is lost, to folders beside the restore's file.
    ///
    /// For example: cargo restore files --journal --apply
    Files {
        /// Copy the journal, too.
        #[arg(long)]
        journal: bool,
    },
    /// Bring back what the log, the long-term table and the published reports know. Set the counters to what the tables hold.
    ///
    /// Look at each finding before you give --apply. Run it with --apply until it says "Nothing is left to do."
    ///
    /// For example: cargo restore rebuild --except actor=client:landlord-app,type=payment.cancelled
    Rebuild(Choices),
    /// Begin the next epoch of the log, with an event for each payment whose version is now lower than the log said, and count again.
    ///
    /// For example: cargo restore finish --apply
    Finish,
    /// Write the restored tables into template.yaml. Commit it then.
    ///
    /// For example: cargo restore template --apply
    Template,
    /// Build the committed template, and make a change set of it. It changes nothing yet.
    ///
    /// For example: cargo restore changes --apply
    Changes,
    /// Show the change set, and give the restored tables to the stack. Refused if anything else is added, removed or replaced.
    ///
    /// For example: cargo restore import --apply
    Import,
    /// Open the API for creates. With --all, also for amendments and cancels.
    ///
    /// For example: cargo restore open --all --apply
    Open {
        /// Amendments and cancels, too.
        #[arg(long)]
        all: bool,
    },
    /// Without log and journal: list what the old hot table has cancelled and the new one has scheduled. --apply cancels it again.
    ///
    /// For example: cargo restore cancel --apply
    Cancel {
        /// Only count the cancels and the amendments that clients were told about since the restored instant.
        #[arg(long)]
        count: bool,
    },
}

/// The options of rebuild.
#[derive(Debug, Args)]
struct Choices {
    /// A copy of the bucket's folder reports, at least of what was written since an hour before the restored instant.
    #[arg(long, value_name = "FOLDER", default_value = "reports")]
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
    let Arguments { file, apply, endpoint, command } = Arguments::parse();
    let mut runner = Runner {
        run: &mut Call::run,
        pause: &mut std::thread::sleep,
        say: &mut |line| println!("{line}"),
        folder: PathBuf::new(),
        is_apply: apply,
    };
    let now = Clock::system().now();
    if let Command::Start(choices) = &command {
        let stack = StackNow::read(&choices.stack, &mut runner)?;
        return shown(runner.go(&start(choices, &stack, &file, &runner.folder, now)?)?, apply);
    }
    let note = Note::read(&file)?;
    let stack = StackNow::for_note(&note, &mut runner)?;
    let store = |tables| async { anyhow::Ok(Store::new(client(endpoint.as_deref()).await?, tables)) };
    let is_done = match command {
        Command::Rebuild(choices) => return rebuild(store(note.tables()).await?, &note, choices, apply).await,
        Command::Begin { old, uncounted } => {
            let tables = if old { TableNames { log: note.log.old.clone(), ..note.tables() } } else { note.tables() };
            begun((&note, &stack), &store(tables).await?, (old, uncounted), &mut runner).await?
        }
        Command::Finish => {
            finished((&note, &stack), &store(note.tables()).await?, &store(old_log(&note)).await?, &mut runner).await?
        }
        Command::Cancel { count: true } => return told(&note, &mut runner, now),
        Command::Cancel { count: false } => {
            let old = TableNames { payments: note.hot.old.clone(), ..note.tables() };
            let lost = lost(&store(old).await?, &store(note.tables()).await?, note.shards()?).await?;
            println!("{} payments are cancelled in the old table, and scheduled in the new one.", lost.len());
            runner.go(&cancels(&note, &stack, &lost)?)?
        }
        Command::Endpoints => {
            let steps = endpoints(&note, &mut runner)?;
            runner.go(&steps)?
        }
        other => {
            if matches!(other, Command::Changes | Command::Import) {
                ensure_usable(&note, &stack, &store(note.tables()).await?, &mut runner).await?;
            }
            let steps = match other {
                Command::Close => clients(&note, &stack, Allowed::Reads)?,
                Command::Open { all } => clients(&note, &stack, if all { Allowed::All } else { Allowed::Creates })?,
                Command::Tables => {
                    if apply && !note.log.is_new() {
                        ensure_closed(&store(note.tables()).await?).await?;
                    }
                    tables(&note, &stack, &mut runner)?
                }
                Command::Files { journal } => {
                    let mut steps = before_files(&note, &stack, now);
                    steps.extend(files(&note, &stack, journal, &mut runner)?);
                    let folders = ["reports", "journal"];
                    folders
                        .iter()
                        .take(if journal { 2 } else { 1 })
                        .filter(|_| apply)
                        .try_for_each(std::fs::create_dir_all)?;
                    steps
                }
                Command::Template => template(&note, &stack, &runner.folder)?,
                Command::Changes => changes(&note, &stack, &mut runner)?,
                _ => import(&note, &stack, &mut runner)?,
            };
            runner.go(&steps)?
        }
    };
    shown(is_done, apply)
}

/// Says how the steps are done, if they were only shown.
#[expect(clippy::unnecessary_wraps, reason = "the end of main")]
fn shown(is_done: bool, is_apply: bool) -> Result<()> {
    match (is_done, is_apply) {
        (true, _) => println!("Nothing is left to do."),
        (false, _) => println!("Nothing was changed. Give --apply to do this."),
    }
    Ok(())
}

fn old_log(note: &Note) -> TableNames {
    TableNames { log: note.log.old.clone(), ..note.tables() }
}

/// Ends the log's epoch.
async fn begun(
    (note, stack): (&Note, &StackNow),
    store: &Store,
    (is_old, is_uncounted): (bool, bool),
    runner: &mut Runner<'_>,
) -> Result<bool> {
    let now = Clock::system().now();
    runner.go(&before_begin(note, stack, !is_uncounted && !note.log.is_new(), now)?)?;
    let log = &store.tables().log;
    if !runner.is_apply {
        let stage =
            store.log_head().await?.map_or("it has no head".to_owned(), |head| format!("it is {:?}", head.stage()));
        println!("Then the epoch of {log} ends: {stage} now.");
        return Ok(false);
    }
    let done = match (note.log.origin, note.log.to) {
        _ if is_old => begin(store).await?,
        (Origin::Empty, _) => begin_lost(store, now).await?,
        (Origin::Kept, _) | (_, None) => begin(store).await?,
        (_, Some(to)) => begin_restored(store, to, now).await?,
    };
    println!("{done}");
    if note.log.origin == Origin::Kept {
        runner.go(&published(stack)?)?;
    }
    Ok(true)
}

/// Begins the next epoch.
async fn finished(
    (note, stack): (&Note, &StackNow),
    store: &Store,
    old: &Store,
    runner: &mut Runner<'_>,
) -> Result<bool> {
    let now = Clock::system().now();
    ensure_ended(note, store.log_head().await?.as_ref())?;
    // A log that is gone cannot be read, and was not ended.
    let is_ended = matches!(old.log_head().await, Ok(Some(head)) if head.stage() != LogStage::Open);
    let is_done = runner.go(&before_finish(note, stack, is_ended, now)?)?;
    if !runner.is_apply {
        println!(
            "Then the next epoch of {} begins, for the stream of {}.",
            store.tables().log,
            store.tables().payments
        );
        return Ok(false);
    }
    let restored = Restored { stream: stream(note, runner)?, tables_to: note.hot.to, log_to: note.log.to };
    let bar = bar()?;
    let clock = Clock::system();
    let progress = |compared, all| show(&bar, "compared", compared, all);
    let done = finish(store, &restored, || clock.now(), progress).await?;
    bar.finish_and_clear();
    println!("{done}");
    Ok(is_done)
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
    Ok(Arc::new(files.with_context(|| {
        format!("{} is not a folder: copy the bucket's folder with `cargo restore files`", folder.display())
    })?))
}

async fn rebuild(store: Store, note: &Note, choices: Choices, is_apply: bool) -> Result<()> {
    let source = match &choices.journal {
        Some(folder) => Source::Journal(open(folder)?),
        None if choices.no_log => Source::Nowhere,
        None => Source::Log,
    };
    let rebuild = Rebuild {
        store,
        source,
        reports: open(&choices.reports)?,
        to: note.hot.to.context("the hot table was not restored, so there is nothing to bring back")?,
        shards: note.shards()?,
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
