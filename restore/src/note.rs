//! The restore's file: which tables are restored, to when, and the names that their successors get.

use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context as _, Result};
use payments_model::{ShardCount, UtcSecond};
use payments_store::TableNames;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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
