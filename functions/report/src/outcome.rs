//! The outcome of a run, which the function answers and emits as metrics.

use metrique_writer::{Entry, EntryWriter};
use payments_model::UtcSecond;
use serde::Serialize;

/// The outcome of an invocation.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportOutcome {
    /// Reports committed.
    pub runs_committed: u64,
    /// Settlements in them.
    pub reported: u64,
    /// Files published, or found published by another run.
    pub published: Vec<String>,
    /// Payments removed from `unreported`.
    pub drained: u64,
    /// Payments that another run had removed from `unreported`.
    pub already_drained: u64,
    /// Payments that the index still showed, but that had been reported.
    pub skipped: u64,
    /// Payments that cannot be read and are not reported. The log says why.
    pub failed: u64,
    /// Whether there may be more work for the next invocation.
    pub more_waits: bool,
    /// The time since the oldest unreported settlement, in seconds. `None` if it could not be read.
    pub oldest_unreported_seconds: Option<u64>,
    /// Whether a file of the committed run is missing or was changed.
    #[serde(skip)]
    pub report_file_altered: bool,
}

impl ReportOutcome {
    /// Notes that a settlement of this instant is unreported.
    pub(crate) fn add_unreported(&mut self, settled_at: UtcSecond, now: UtcSecond) {
        let waited = u64::try_from((now.as_chrono() - settled_at.as_chrono()).num_seconds()).unwrap_or(0);
        self.oldest_unreported_seconds = self.oldest_unreported_seconds.max(Some(waited));
    }
}

/// Written by hand because the order of the metrics differs from that of the answer.
impl Entry for ReportOutcome {
    fn write<'a>(&'a self, writer: &mut impl EntryWriter<'a>) {
        writer.value("Reported", &self.reported);
        writer.value("Skipped", &self.skipped);
        writer.value("ReportFailed", &self.failed);
        writer.value("RunsCommitted", &self.runs_committed);
        writer.value("Drained", &self.drained);
        writer.value("ReportFileAltered", &self.report_file_altered);
        writer.value("OldestUnreportedSeconds", &self.oldest_unreported_seconds);
    }
}
