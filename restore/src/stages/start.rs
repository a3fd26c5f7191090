//! The start of a restore: its file.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use chrono::TimeDelta;
use clap::Args;
use payments_model::{ShardCount, UtcSecond};
use payments_store::CHANGEABLE_DAYS;

use crate::note::{Kind, Note, Origin, Table};
use crate::stack::StackNow;
use crate::stages::{SOON, describe_table, fact, latest, window};
use crate::step::{Act, Fact, Read, Step, Want};

/// The tables to restore, and the instants.
#[derive(Debug, Clone, Args)]
pub struct Start {
    /// The stack: payments-prod or payments-dev.
    #[arg(long)]
    pub stack: String,

    /// T: restore the hot table to this instant, such as 2026-11-20T09:00:00Z.
    #[arg(long, value_name = "INSTANT", required_unless_present = "log")]
    pub to: Option<UtcSecond>,

    /// Also restore the long-term table, to the latest possible instant.
    #[arg(long, requires = "to")]
    pub history: bool,

    /// Also restore the long-term table, to this instant, which is not before that of the hot table.
    #[arg(long, value_name = "INSTANT", requires = "to", conflicts_with_all = ["history", "used"])]
    pub history_to: Option<UtcSecond>,

    /// The log's table is damaged or lost: restore it from the damaged table, from the backup of the deleted one, or begin an empty one. `used`: the stack uses
    /// a restored log already, and only the new epoch is missing.
    #[arg(long, value_name = "ORIGIN", requires = "log_to")]
    pub log: Option<Origin>,

    /// L: the instant to which the log is restored, or at which it was lost.
    #[arg(long, value_name = "INSTANT", requires = "log")]
    pub log_to: Option<UtcSecond>,

    /// The stack uses the restored hot table already: only the new epoch is missing.
    #[arg(long, requires = "to", conflicts_with = "history")]
    pub used: bool,

    /// 2 for the second restore of this stack, and so on: a part of the new tables' names.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub number: u32,
}

/// The step that writes the restore's file.
///
/// # Errors
/// If an instant is not over or too long ago, the stack is not this system's, or the file is of another restore.
pub fn start(choices: &Start, stack: &StackNow, path: &Path, folder: &Path, now: UtcSecond) -> Result<Vec<Step>> {
    let before = Note::read(&folder.join(path));
    ensure_possible(choices, before.is_err(), now)?;
    let shards: ShardCount = stack.parameter("ReadShards")?.parse().context("the parameter ReadShards is wrong")?;
    let table = |kind: Kind, origin: Origin, to| {
        let old = stack.table(kind)?.to_owned();
        let restored = format!("{}-restored-{}-{}", choices.stack, kind.word(), choices.number);
        let stays = matches!(origin, Origin::Kept | Origin::Used);
        anyhow::Ok(Table { new: if stays { old.clone() } else { restored }, old, origin, to })
    };
    let hot = match (choices.to, choices.used) {
        (None, _) => Origin::Kept,
        (Some(_), false) => Origin::Table,
        (Some(_), true) => Origin::Used,
    };
    let history = if choices.history || choices.history_to.is_some() { Origin::Table } else { Origin::Kept };
    // A head is in the long-term table before it leaves the hot one.
    if let (Some(hot), Some(history)) = (choices.to, choices.history_to) {
        ensure!(
            hot <= history,
            "the hot table would be later than the long-term one: give --history-to {hot} or later"
        );
    }
    let mut note = Note {
        stack: choices.stack.clone(),
        stack_id: stack.id.clone(),
        number: choices.number,
        begun: Some(now),
        shards: shards.get(),
        hot: table(Kind::Hot, hot, choices.to)?,
        history: table(Kind::History, history, choices.history_to)?,
        log: table(Kind::Log, choices.log.unwrap_or(Origin::Kept), choices.log_to)?,
        rebuild: None,
        rebuilt: None,
    };
    let mut needs = Vec::new();
    if let Ok(before) = &before {
        note.begun = before.begun.or(note.begun);
        (note.rebuild, note.rebuilt) = (before.rebuild.clone(), before.rebuilt);
        let is_same = note == Note { begun: note.begun, ..before.clone() };
        let file = path.display();
        ensure!(is_same, "{file} is of another restore, or of other choices; move it away, then run this again");
    }
    let is_damaged = before.is_err() && folder.join(path).exists();
    for (kind, table) in note.each().into_iter().filter(|(_, table)| table.is_new() && before.is_err()) {
        needs.extend(if is_damaged { vec![own(table, stack)] } else { needed_of(kind, table) });
        if kind == Kind::History && table.to.is_none() {
            needs.extend(note.hot.to.map(|to| latest(&table.old, to)));
        }
    }
    let text = note.text()?;
    let done = Fact {
        name: format!("the text of {}", path.display()),
        read: Read::Text(path.to_owned()),
        part: String::new(),
        of: None,
        want: Want::Is(text.clone().into()),
        remedy: "free the disk".to_owned(),
    };
    let restored = note.each().map(|(_, table)| {
        let to = table.to.map(|to| format!(" to {to}")).unwrap_or_default();
        match table.origin {
            Origin::Kept => format!("{} stays", table.old),
            Origin::Used => format!("{} is restored{to} already", table.new),
            Origin::Empty => format!("an empty {} takes the place of {}", table.new, table.old),
            _ => format!("{} is restored{to} as {}", table.old, table.new),
        }
    });
    let what = format!("Note what is restored: {}", restored.join(", "));
    Ok(vec![Step { what, needs, act: Act::Write(path.to_owned(), text), done: vec![done], failed: None, within: SOON }])
}

/// The instants are over, and those of a new restore not too long ago.
fn ensure_possible(choices: &Start, is_new: bool, now: UtcSecond) -> Result<()> {
    for to in choices.to.into_iter().chain(choices.log_to) {
        ensure!(to <= now, "{to} is not over: it is {now}; give an instant before the loss");
    }
    let earliest = now.saturating_add(-TimeDelta::days(CHANGEABLE_DAYS.into()));
    for to in choices.to.into_iter().chain(choices.history_to).filter(|_| is_new) {
        ensure!(
            to >= earliest,
            "{to} is more than {CHANGEABLE_DAYS} days ago: the log has no older changes, and payments that were open then may be sealed now; \
             restore to a later instant"
        );
    }
    Ok(())
}

/// The file is damaged: the new table is this restore's, or its name is free.
fn own(table: &Table, stack: &StackNow) -> Fact {
    let remedy = "it is of an earlier restore, or of other choices: give those of this restore, or another --number";
    let (name, call) = (format!("the table {}", table.new), describe_table(&table.new));
    if table.origin == Origin::Empty {
        return fact(name, call, "/Table/RestoreSummary", Want::Missing, remedy);
    }
    let source = stack.table_arn(&table.old).into();
    let want = Want::Restored(source, table.to.filter(|_| table.origin == Origin::Table));
    fact(name, call, "/Table", want, remedy)
}

/// The new table's name is free, and the old table can be restored.
fn needed_of(kind: Kind, table: &Table) -> Vec<Fact> {
    let remedy = "it is of an earlier restore: give another --number";
    let mut needs = vec![fact(
        format!("the table {}", table.new),
        describe_table(&table.new),
        "/Table/TableName",
        Want::Missing,
        remedy,
    )];
    if table.origin == Origin::Table {
        needs.push(window(&table.old, table.to, kind));
    }
    needs
}
