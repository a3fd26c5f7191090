//! The kinds of files that are kept for good, and their places.

use object_store::path::Path;

payments_model::kinds! {
    /// A kind of files.
    FileKind {
        /// Events of the log.
        Journal = "journal",
        /// Settlements.
        Report = "report",
        /// The counts and sums of a report.
        Summary = "summary",
        /// A plan of an undo.
        UndoPlan = "undo-plan",
        /// A part of the results of an undo.
        UndoPart = "undo-part",
        /// The payments of an undo that were claimed.
        UndoClaimed = "undo-claimed",
        /// Finished payments of a due date.
        Sealed = "sealed",
    }
}

impl FileKind {
    /// The folder of its files.
    #[must_use]
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Journal => "journal",
            Self::Report | Self::Summary => "reports",
            Self::UndoPlan | Self::UndoPart | Self::UndoClaimed => "undo",
            Self::Sealed => "sealed",
        }
    }

    /// The ending of the names of its files.
    #[must_use]
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Journal | Self::UndoPlan | Self::UndoPart => ".jsonl.gz",
            Self::Report => ".csv.gz",
            Self::Summary => ".summary.json",
            Self::UndoClaimed => ".csv",
            Self::Sealed => ".parquet",
        }
    }

    /// The path of a file, by its name in the folder without the ending.
    #[must_use]
    pub fn path(self, name: &str) -> Path {
        Path::from(format!("{}/{name}{}", self.folder(), self.ending()))
    }
}
