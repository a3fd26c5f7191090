//! A published report as a restore reads it: its payments, and the run that published it.

use std::io::Read as _;

use flate2::read::GzDecoder;
use payments_store::{ReportFile, ReportRun};
use sha2::{Digest as _, Sha256};

use crate::kind::FileKind;
use crate::report::rows::{ReportedRow, RowReader};

/// The ending of a report's name.
const ENDING: &str = FileKind::Report.ending();

/// The most bytes of a report's text: a million of the longest rows.
const MAX_TEXT_BYTES: u64 = 1_000_000 * 1_024;

/// A published report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedReport {
    /// Its run, as it is once it is finished. A report does not say where its attempt was written,
    /// nor when it was committed: its own place and its last settlement stand for these.
    pub run: ReportRun,
    /// Its payments.
    pub rows: Vec<ReportedRow>,
}

impl PublishedReport {
    /// The number of the run, by the name of its report: `…-run-000042.csv.gz`. `None` for another file.
    #[must_use]
    pub fn number_of(name: &str) -> Option<u64> {
        let (_, number) = name.strip_suffix(ENDING)?.rsplit_once("-run-")?;
        number.parse().ok()
    }

    /// The name of the summary beside a report.
    #[must_use]
    pub fn summary_of(name: &str) -> String {
        format!("{}{}", name.strip_suffix(ENDING).unwrap_or(name), FileKind::Summary.ending())
    }

    /// Reads a report that was published as `name`, and its summary.
    ///
    /// # Errors
    /// The fault of the report.
    pub fn decode(name: &str, report: &[u8], summary: &[u8]) -> Result<Self, &'static str> {
        let number = Self::number_of(name).ok_or("has a name that names no run")?;
        let mut text = Vec::new();
        let unpacked = GzDecoder::new(report).take(MAX_TEXT_BYTES).read_to_end(&mut text);
        unpacked.map_err(|_| "cannot be unpacked")?;
        let mut reader = RowReader::default();
        let mut rows = Vec::new();
        let mut text = text.as_slice();
        while let Some(row) = reader.read(&mut text)? {
            rows.push(row);
        }
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Err("has no payments") };
        if !reader.is_between_rows() {
            return Err("ends within a row");
        }
        let file = |name: String, bytes: &[u8]| ReportFile {
            attempt: name.clone(),
            published: name,
            bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            sha256: hexadecimal(Sha256::digest(bytes).as_slice()),
        };
        let run = ReportRun {
            number,
            csv: file(name.to_owned(), report),
            summary: file(Self::summary_of(name), summary),
            rows: u64::try_from(rows.len()).unwrap_or(u64::MAX),
            first_settled_at: first.unreported.settled_at,
            last_settled_at: last.unreported.settled_at,
            committed_at: last.unreported.settled_at,
            finished: true,
        };
        Ok(Self { run, rows })
    }
}

/// Formats bytes as lower-case hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::report::rows::COLUMNS;

    const NAME: &str = "reports/2026-11-20T010203Z--2026-11-20T010203Z-run-000042.csv.gz";
    const ROW: &str = "626e8292-8e84-575a-b684-0af73927405b,payer,payee,1,GBP,2026-11-20T00:00:00Z,2026-11-20,PROCESSED,T-1,,,2026-11-20T01:02:03Z,\r\n";

    fn packed(text: &str) -> Vec<u8> {
        let mut file = GzEncoder::new(Vec::new(), Compression::fast());
        file.write_all(text.as_bytes()).unwrap();
        file.finish().unwrap()
    }

    #[test]
    fn a_report_is_read_with_its_run_and_what_is_none_is_rejected() {
        let header = format!("{}\r\n", COLUMNS.join(","));
        let report = packed(&format!("{header}{ROW}"));
        let read = PublishedReport::decode(NAME, &report, b"{}").unwrap();
        assert_eq!((read.run.number, read.run.rows, read.rows.len(), read.run.finished), (42, 1, 1, true));
        assert_eq!(read.run.last_settled_at.to_string(), "2026-11-20T01:02:03Z");
        assert_eq!((read.run.csv.bytes, read.run.summary.bytes), (report.len() as u64, 2));
        assert!(read.run.summary.published.ends_with("-run-000042.summary.json"));
        for (name, bytes, why) in [
            ("reports/2026.csv.gz", report.as_slice(), "has a name that names no run"),
            (NAME, &report[..20], "cannot be unpacked"),
            (NAME, &packed(&header), "has no payments"),
            (NAME, &packed(&format!("{header}{ROW}626e8292")), "ends within a row"),
            (NAME, &packed(&format!("{header}a,b\r\n")), "has a row that is not a settlement"),
        ] {
            assert_eq!(PublishedReport::decode(name, bytes, b"{}").unwrap_err(), why);
        }
    }
}
