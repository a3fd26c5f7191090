//! The restore's file: which tables are restored, to when, and the names that their successors get.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, Result, ensure};
use payments_model::{ShardCount, UtcSecond};
use payments_store::TableNames;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::file;

/// The origin of a table's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The stack's table, which stays.
    #[value(skip)]
    Kept,
    /// The table, at an instant.
    Table,
    /// The backup that a deleted table leaves.
    Backup,
    /// Nothing: an empty table.
    Empty,
    /// The stack uses the restored table already.
    Used,
}

/// A table and its successor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// The table that the stack had.
    pub old: String,
    /// The table that takes its place, which may be the same.
    pub new: String,
    /// The origin of its content.
    pub origin: Origin,
    /// The instant to which it is restored, or at which it was lost.
    #[serde(default, with = "text", skip_serializing_if = "Option::is_none")]
    pub to: Option<UtcSecond>,
}

impl Table {
    /// Whether another table takes its place.
    pub fn is_new(&self) -> bool {
        self.old != self.new
    }
}

/// The restore's file, which every command reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The stack.
    pub stack: String,
    /// Its id, which tells it from a namesake in another account or region.
    pub stack_id: String,
    /// 1 for the first restore of this stack, 2 for the second, and so on.
    pub number: u32,
    /// The instant of the file.
    #[serde(with = "text")]
    pub begun: Option<UtcSecond>,
    /// The shards of the indexes: the stack's ReadShards.
    pub shards: u16,
    /// The hot table.
    pub hot: Table,
    /// The long-term table.
    pub history: Table,
    /// The table of the log.
    pub log: Table,
    /// The choices with which `rebuild` first changed something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuild: Option<Chosen>,
    /// The instant at which `rebuild --apply` had nothing left to do.
    #[serde(default, with = "text", skip_serializing_if = "Option::is_none")]
    pub rebuilt: Option<UtcSecond>,
}

/// The choices of `rebuild`: another one would bring back what the first one left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// The events that are left out.
    pub excepts: Vec<String>,
    /// The copy of the journal that is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<PathBuf>,
    /// Neither log nor journal is read.
    pub no_log: bool,
    /// Events may be missing that nobody knows.
    pub accept_gaps: bool,
}

impl Chosen {
    /// The choices of this run: those that the file has, if none are given.
    ///
    /// # Errors
    /// If others are given, or the log was lost and nothing else is named.
    pub fn for_run(self, note: &Note, file: &Path) -> Result<Self> {
        let chosen = match &note.rebuild {
            None => self,
            Some(noted) => {
                let is_same = (self.excepts.is_empty() || self.excepts == noted.excepts)
                    && (self.journal.is_none() || self.journal == noted.journal)
                    && (!self.no_log || noted.no_log);
                ensure!(
                    is_same,
                    "{0} says that rebuild began with {noted}: give the same or none. What it brought back stays, so for another choice \
                     restore the tables anew: move {0} away, and go on from `cargo restore start --number {1}`",
                    file.display(),
                    note.number + 1
                );
                Self { accept_gaps: self.accept_gaps || noted.accept_gaps, ..noted.clone() }
            }
        };
        ensure!(
            note.log.origin == Origin::Kept || chosen.journal.is_some() || chosen.no_log,
            "the log was lost or restored, so it lacks changes, and cancels among them: give --journal a copy of the journal, which \
             `cargo restore files --journal` makes, or --no-log if that cannot be read either"
        );
        Ok(chosen)
    }
}

impl std::fmt::Display for Chosen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut options: Vec<String> = self.journal.iter().map(|it| format!("--journal {}", it.display())).collect();
        options.extend(self.no_log.then(|| "--no-log".to_owned()));
        options.extend(self.excepts.iter().map(|it| format!("--except {it}")));
        options.extend(self.accept_gaps.then(|| "--accept-gaps".to_owned()));
        f.write_str(if options.is_empty() { "no options" } else { "" })?;
        f.write_str(&options.join(" "))
    }
}

impl Note {
    /// Reads the file.
    ///
    /// # Errors
    /// If it is missing or unreadable.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| {
            format!("{} cannot be read; write it with `cargo restore start --apply`, in this folder", path.display())
        })?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} is damaged; write it anew with `cargo restore start --apply`", path.display()))
    }

    /// Writes the file: as a whole, or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        file::write(path, &self.text()?)
    }

    /// The text of the file.
    pub(crate) fn text(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// The shards of the indexes.
    ///
    /// # Errors
    /// If the file has another number.
    pub fn shards(&self) -> Result<ShardCount> {
        self.shards.to_string().parse().context("the restore's file has a wrong number of shards")
    }

    /// The names of the tables after the restore.
    pub fn tables(&self) -> TableNames {
        let name = |table: &Table| table.new.clone();
        TableNames { payments: name(&self.hot), history: name(&self.history), log: name(&self.log) }
    }

    /// The instant of the file.
    pub(crate) fn begun(&self) -> Result<UtcSecond> {
        self.begun.context("the restore's file has no instant; write it anew with `cargo restore start --apply`")
    }

    /// The three tables.
    pub(crate) fn each(&self) -> [(Kind, &Table); 3] {
        [(Kind::Hot, &self.hot), (Kind::History, &self.history), (Kind::Log, &self.log)]
    }
}

/// One of the three tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Hot,
    History,
    Log,
}

impl Kind {
    /// The part of the name of a restored table.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::History => "history",
            Self::Log => "log",
        }
    }

    /// The stack's output that names the table.
    pub(crate) fn output(self) -> &'static str {
        match self {
            Self::Hot => "PaymentsTableName",
            Self::History => "HistoryTableName",
            Self::Log => "LogTableName",
        }
    }

    /// The attribute by which its items expire.
    pub(crate) fn expiry(self) -> &'static str {
        if self == Self::History { "keptUntil" } else { "expires_at" }
    }

    /// The view of its stream. The long-term table has none.
    pub(crate) fn stream_view(self) -> Option<&'static str> {
        match self {
            Self::Hot => Some("NEW_AND_OLD_IMAGES"),
            Self::History => None,
            Self::Log => Some("KEYS_ONLY"),
        }
    }

    /// The logical ids of the mappings of its stream.
    pub(crate) fn mappings(self) -> &'static [&'static str] {
        match self {
            Self::Hot => &["DispatchFunctionBecamePending", "StreamAggregatorFunctionHeadChanged"],
            Self::History => &[],
            Self::Log => &["PublishFunctionSegmentAppended"],
        }
    }
}

/// Values of the model as their texts.
mod text {
    use super::*;

    pub(super) fn serialize<T: Display, S: Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
        value.as_ref().map(T::to_string).serialize(to)
    }

    pub(super) fn deserialize<'d, T: FromStr, D: Deserializer<'d>>(from: D) -> Result<Option<T>, D::Error>
    where
        T::Err: Display,
    {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(serde::de::Error::custom)).transpose()
    }
}
