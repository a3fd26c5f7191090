//! `cargo restore rebuild`: its options, its run and its lines.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::Args;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use payments_boot::Clock;
use payments_restore::stages::ensure_copied;
use payments_restore::{Change, Chosen, Except, ExceptError, Line, Note, Rebuild, Runner, Source, StackNow, Told};
use payments_store::Store;

use crate::screen::{bar, show, shown};

/// The payments of each change that are shown. `--json` shows all.
const EXAMPLES: u32 = 10;

/// The options of rebuild.
#[derive(Debug, Args)]
pub(crate) struct Choices {
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
    #[arg(long = "except", value_name = "WHAT", value_parser = except)]
    excepts: Vec<String>,

    /// Write although unknown events are missing: you do what docs/restore.md says in "Without log and journal".
    #[arg(long)]
    accept_gaps: bool,

    /// Also list details without a head and without an event. Reads the whole long-term table, which takes hours.
    #[arg(long)]
    find_details: bool,

    /// The most payments written in a second. Each costs the table up to 1 write unit and its indexes up to 4.
    #[arg(long, value_name = "NUMBER", default_value_t = 500)]
    per_second: u32,

    /// Print a line of JSON for each change and finding, and one for all of it.
    #[arg(long)]
    json: bool,
}

fn open(folder: &Path) -> Result<Arc<dyn ObjectStore>> {
    let files = match std::fs::metadata(folder) {
        Ok(found) if !found.is_dir() => Err(std::io::Error::from(std::io::ErrorKind::NotADirectory).into()),
        _ => LocalFileSystem::new_with_prefix(folder).map_err(anyhow::Error::from),
    };
    Ok(Arc::new(files.with_context(|| {
        format!("{} is not a folder: copy the bucket's folder with `cargo restore files`", folder.display())
    })?))
}

/// The text of an exception.
fn except(text: &str) -> Result<String, ExceptError> {
    text.parse::<Except>().map(|_| text.to_owned())
}

/// Shows what is brought back, or brings it back. The first run that changes something notes its choices, and the last one its end.
pub(crate) async fn rebuild(
    (store, replaced): (Store, Option<Store>),
    (note, stack, file): (&Note, &StackNow, &Path),
    choices: Choices,
    runner: &mut Runner<'_>,
) -> Result<()> {
    let Choices { excepts, journal, no_log, accept_gaps, .. } = choices;
    let chosen = Chosen { excepts, journal, no_log, accept_gaps }.for_run(note, file)?;
    if runner.is_apply {
        ensure_copied(note, stack, (&choices.reports, chosen.journal.as_deref()), runner)?;
    }
    let source = match &chosen.journal {
        Some(folder) => Source::Journal(open(folder)?),
        None if chosen.no_log => Source::Nowhere,
        None => Source::Log,
    };
    let now = Clock::system().now();
    let rebuild = Rebuild {
        store,
        replaced,
        source,
        reports: open(&choices.reports)?,
        to: note.hot.to.context("the hot table was not restored, so there is nothing to bring back")?,
        shards: note.shards()?,
        excepts: chosen.excepts.iter().map(|text| text.parse()).collect::<Result<_, _>>()?,
        accepts_gaps: chosen.accept_gaps,
        finds_details: choices.find_details,
        per_second: choices.per_second,
        now,
    };
    let (bar, seen) = (bar()?, RefCell::new(BTreeMap::<Change, u32>::new()));
    let line = |line: &Line| {
        if let Line::Change { change, .. } = line {
            let mut seen = seen.borrow_mut();
            let count = seen.entry(*change).or_default();
            *count += 1;
            if !choices.json && *count > EXAMPLES {
                return;
            }
        }
        let text = if choices.json { serde_json::to_string(line).unwrap_or_default() } else { line.to_string() };
        bar.suspend(|| println!("{text}"));
    };
    let told = Told { line, progress: |what: &str, done, all| show(&bar, what, done, all) };
    let outcome = if runner.is_apply {
        let begun = Note { rebuild: Some(chosen), rebuilt: None, ..note.clone() };
        let outcome = rebuild.apply_after(&|| begun.write(file), &told).await?;
        if outcome.is_nothing() {
            Note { rebuilt: Some(now), ..begun }.write(file)?;
        }
        outcome
    } else {
        rebuild.plan(&told).await?
    };
    bar.finish_and_clear();
    if choices.json {
        println!("{}", serde_json::to_string(&outcome)?);
        return Ok(());
    }
    print!("{outcome}");
    if outcome.is_nothing() { Ok(()) } else { shown(false, runner.is_apply) }
}
