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
    }
}

impl FileKind {
    /// The folder of its files.
    #[must_use]
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Journal => "journal",
            Self::Report | Self::Summary => "reports",
        }
    }

    /// The ending of the names of its files.
    #[must_use]
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Journal => ".jsonl.gz",
            Self::Report => ".csv.gz",
            Self::Summary => ".summary.json",
        }
    }

    /// The path of a file, by its name in the folder without the ending.
    #[must_use]
    pub fn path(self, name: &str) -> Path {
        Path::from(format!("{}/{name}{}", self.folder(), self.ending()))
    }
}
