//! `cargo restore`: the command line.

mod rebuilding;
mod screen;

use std::path::{Path, PathBuf};

use anyhow::Result;
use aws_sdk_dynamodb::Client;
use chrono::TimeDelta;
use clap::{Parser, Subcommand};
use payments_boot::{Clock, version};
use payments_model::UtcSecond;
use payments_restore::stages::{
    Allowed, Lost, Start, before_begin, before_files, before_finish, cancels, changes, clients, endpoints,
    ensure_closed, ensure_ended, ensure_usable, files, import, listed, lost, published, resume, scheduled, start,
    stream, tables, template, told,
};
use payments_restore::{
    Call, Note, Origin, Restored, Runner, StackNow, Step, begin, begin_lost, begin_restored, finish,
};
use payments_store::{CHANGEABLE_DAYS, LogStage, Store, TableNames};

use crate::rebuilding::{Choices, rebuild};
use crate::screen::{bar, show, shown};

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
    /// Disable the webhook endpoints of a restored long-term table: a deleted one would get events again. Stop all claims and sends, and
    /// hold what the old table holds: the table may be older than a stop or a hold.
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
    /// Resume claims and sends that endpoints stopped. A stop that an operator made stays, and so do holds.
    ///
    /// For example: cargo restore resume --apply
    Resume,
    /// Open the API for creates. With --all, also for amendments and cancels.
    ///
    /// For example: cargo restore open --all --apply
    Open {
        /// Amendments and cancels, too.
        #[arg(long)]
        all: bool,
    },
    /// Without log and journal: list what the old hot table has cancelled and the new one has scheduled, or take the payments that you
    /// give. --apply cancels them again. A refused cancel stops no other, and is named at the end.
    ///
    /// For example: cargo restore cancel --from cancelled.txt --apply
    Cancel {
        /// This payment, such as acct-1/0b1c…: its account and its id. Can be given several times. The old table is not read.
        #[arg(long = "payment", value_name = "ACCOUNT/ID", conflicts_with = "count")]
        payments: Vec<Lost>,

        /// The payments of this file, ACCOUNT/ID a line. The old table is not read.
        #[arg(long, value_name = "FILE", conflicts_with = "count")]
        from: Option<PathBuf>,

        /// Only count the cancels and the amendments that clients were told about since the restored instant.
        #[arg(long)]
        count: bool,
    },
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
        Command::Rebuild(choices) => {
            let replaced = TableNames { history: note.history.old.clone(), ..note.tables() };
            let replaced = if note.history.is_new() { Some(store(replaced).await?) } else { None };
            let stores = (store(note.tables()).await?, replaced);
            return rebuild(stores, (&note, &stack, &file), choices, &mut runner).await;
        }
        Command::Begin { old, uncounted } => {
            let tables = if old { TableNames { log: note.log.old.clone(), ..note.tables() } } else { note.tables() };
            begun((&note, &stack), &store(tables).await?, (old, uncounted), &mut runner).await?
        }
        Command::Finish => {
            finished((&note, &stack), &store(note.tables()).await?, &store(old_log(&note)).await?, &mut runner).await?
        }
        Command::Cancel { count: true, .. } => return told(&note, &mut runner, now),
        other => {
            let stage = Stage { note: &note, stack: &stack, endpoint: endpoint.as_deref(), now };
            let steps = stage.steps(other, &mut runner).await?;
            runner.go(&steps)?
        }
    };
    shown(is_done, apply)
}

/// A stage of steps alone.
struct Stage<'s> {
    note: &'s Note,
    stack: &'s StackNow,
    endpoint: Option<&'s str>,
    now: UtcSecond,
}

impl Stage<'_> {
    async fn store(&self, tables: TableNames) -> Result<Store> {
        Ok(Store::new(client(self.endpoint).await?, tables))
    }

    async fn steps(&self, command: Command, runner: &mut Runner<'_>) -> Result<Vec<Step>> {
        let Self { note, stack, now, .. } = *self;
        let apply = runner.is_apply;
        if matches!(command, Command::Changes | Command::Import) {
            ensure_usable(note, stack, &self.store(note.tables()).await?, runner).await?;
        }
        match command {
            Command::Close => clients(note, stack, Allowed::Reads),
            Command::Open { all } => {
                if !apply {
                    let count = scheduled(&self.store(note.tables()).await?, note.shards()?).await?;
                    println!("{count} payments are SCHEDULED, and paid when they are due.");
                }
                clients(note, stack, if all { Allowed::All } else { Allowed::Creates })
            }
            Command::Tables => {
                if apply && !note.log.is_new() {
                    ensure_closed(&self.store(note.tables()).await?).await?;
                }
                tables(note, stack, now, runner)
            }
            Command::Endpoints => endpoints(note, runner),
            Command::Resume => resume(note, now),
            Command::Files { journal } => {
                let folders = (Path::new("reports"), journal.then_some(Path::new("journal")));
                let mut steps = before_files(note, stack, now);
                steps.extend(files(note, stack, folders, runner)?);
                if apply {
                    [folders.0].into_iter().chain(folders.1).try_for_each(std::fs::create_dir_all)?;
                }
                Ok(steps)
            }
            Command::Template => template(note, stack, &runner.folder),
            Command::Changes => changes(note, stack, runner),
            Command::Cancel { payments, from, .. } => self.cancels(payments, from).await,
            _ => import(note, stack, runner),
        }
    }

    /// Cancels the payments that are given, or else those that only the old table has as cancelled.
    async fn cancels(&self, mut payments: Vec<Lost>, from: Option<PathBuf>) -> Result<Vec<Step>> {
        let Self { note, stack, .. } = *self;
        if from.is_none() && payments.is_empty() {
            let old = TableNames { payments: note.hot.old.clone(), ..note.tables() };
            let lost = lost(&self.store(old).await?, &self.store(note.tables()).await?, note.shards()?).await?;
            println!("{} payments are cancelled in the old table, and scheduled in the new one.", lost.len());
            return cancels(note, stack, &lost);
        }
        payments.extend(from.map_or(Ok(Vec::new()), |file| listed(&file))?);
        payments.sort();
        payments.dedup();
        println!("{} payments are given.", payments.len());
        cancels(note, stack, &payments)
    }
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
    let clear_from = note.hot.to.map(|_| now.saturating_add(TimeDelta::days(CHANGEABLE_DAYS.into())));
    let restored = Restored { stream: stream(note, runner)?, tables_to: note.hot.to, log_to: note.log.to, clear_from };
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
    let missing = "this program is built without AWS's clients: give --endpoint, or use `cargo restore`";
    let endpoint = anyhow::Context::context(endpoint, missing)?;
    Ok(payments_boot::dynamodb_at(endpoint, "local"))
}
