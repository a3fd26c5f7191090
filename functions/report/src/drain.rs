//! Removes the payments of a published file from `unreported`, as read back from the file, and sets their heads to
//! expire.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write as _;

use flate2::write::GzDecoder;
use payments_boot::Deadline;
use payments_files::{ReportedRow, RowReader};
use payments_model::{BusinessDate, FailureCode, causes};
use payments_store::{Marked, StoreError, expiry_of_reported};
use payments_work::{Halt, Round, Work, at_once, drive};

use crate::error::ReportError;
use crate::function::Report;
use crate::outcome::ReportOutcome;
use crate::stored::Stored;

/// The payments removed at once.
const AT_ONCE: usize = 32;

/// The most payments removed per second. Each costs the table 1 unit and the index 1. `docs/performance.md` shows that
/// their partitions accept it beside the feed, the sweep and the settlements. A report of 100,000 is drained in 100 s.
const PER_SECOND: u32 = 1_000;

/// The compressed bytes unpacked at once: about 400 rows of 200 bytes, at four to one.
const SLICE: usize = 16 * 1024;

/// The failures of a file by due date and code. A file with as many codes as rows has 100,000 of them, 10 MB.
pub(crate) type Failures = BTreeMap<BusinessDate, BTreeMap<FailureCode, u64>>;

/// The rows of a file, unpacked piece by piece.
struct Rows {
    file: Stored,
    gzip: GzDecoder<Vec<u8>>,
    reader: RowReader,
    ended: bool,
}

impl Rows {
    fn new(file: Stored) -> Self {
        Self { file, gzip: GzDecoder::new(Vec::new()), reader: RowReader::default(), ended: false }
    }

    /// Returns the rows that end in the next piece, or `None` after the last one.
    async fn next(&mut self) -> Result<Option<Vec<ReportedRow>>, ReportError> {
        let Some(piece) = self.file.next().await? else { return self.end() };
        let mut rows = Vec::new();
        for slice in piece.chunks(SLICE) {
            self.gzip.write_all(slice).map_err(|error| self.faulty(&error))?;
            self.read_to(&mut rows)?;
        }
        Ok(Some(rows))
    }

    fn end(&mut self) -> Result<Option<Vec<ReportedRow>>, ReportError> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(None);
        }
        self.gzip.try_finish().map_err(|error| self.faulty(&error))?;
        let mut rows = Vec::new();
        self.read_to(&mut rows)?;
        if self.reader.is_between_rows() { Ok(Some(rows)) } else { Err(self.file.altered("ends within a row")) }
    }

    fn read_to(&mut self, rows: &mut Vec<ReportedRow>) -> Result<(), ReportError> {
        let text = std::mem::take(self.gzip.get_mut());
        let mut text = text.as_slice();
        while let Some(row) = self.reader.read(&mut text).map_err(|why| self.file.altered(why))? {
            rows.push(row);
        }
        Ok(())
    }

    fn faulty(&self, error: &std::io::Error) -> ReportError {
        self.file.altered(&format!("cannot be unpacked: {error}"))
    }
}

/// The drain of one file.
struct Drain<'r> {
    report: &'r Report,
    deadline: &'r Deadline,
    outcome: &'r mut ReportOutcome,
    /// Rows that were read and not yet removed.
    in_hand: VecDeque<ReportedRow>,
}

impl Report {
    /// Removes the payments of a file of `rows` rows from `unreported`. Returns the failures in the file, once all payments
    /// are removed. If not all are, the next invocation starts again and finds the first ones removed.
    ///
    /// If the number of rows differs, an error is returned before anything is removed: an operator
    /// may have made the file anew.
    pub(crate) async fn drain(
        &self,
        file: Stored,
        rows: u64,
        deadline: &Deadline,
        outcome: &mut ReportOutcome,
    ) -> Result<Option<Failures>, ReportError> {
        let mut counted = 0;
        let mut failures = Failures::new();
        let mut counting = Rows::new(file.clone());
        while let Some(some) = counting.next().await? {
            counted += some.len() as u64;
            for (date, code) in some.into_iter().filter_map(|row| Some((row.due_date, row.failure_code?))) {
                *failures.entry(date).or_default().entry(code).or_default() += 1;
            }
            if deadline.has_come() {
                return Ok(None);
            }
        }
        if counted != rows {
            return Err(file.altered(&format!("has {counted} rows, but {rows} were committed")));
        }
        let mut drain = Drain { report: self, deadline, outcome, in_hand: VecDeque::with_capacity(AT_ONCE) };
        let mut reading = Rows::new(file);
        while let Some(some) = reading.next().await? {
            for row in some {
                drain.in_hand.push_back(row);
                if drain.in_hand.len() == AT_ONCE && !drain.remove().await? {
                    return Ok(None);
                }
            }
        }
        Ok(drain.remove().await?.then_some(failures))
    }

    /// Removes the payment of a row from `unreported`. If the payment is not due as at first, its head is not where the
    /// row leads, and its details say where. If it stayed in the index, the next report would have it, too.
    async fn mark(&self, row: &ReportedRow) -> Result<Marked, StoreError> {
        let (guess, expires) = (row.payment.guessed_key(), expiry_of_reported(row.due_date, self.clock.now()));
        let marked = self.store.mark_reported(&guess, &row.unreported, expires).await?;
        if marked != Marked::NoHead {
            return Ok(marked);
        }
        match self.store.details(row.payment.payment_id).await?.map(|details| details.key()) {
            Some(key) if key != guess => self.store.mark_reported(&key, &row.unreported, expires).await,
            // The payment was archived, or has expired.
            _ => Ok(Marked::NoHead),
        }
    }
}

impl Drain<'_> {
    /// Removes the payments in hand, with retries. Returns whether all are removed.
    async fn remove(&mut self) -> Result<bool, ReportError> {
        let Self { report, deadline, .. } = *self;
        match drive(self, &report.clock, deadline).await {
            Ok(()) => Ok(true),
            Err(Halt::OutOfTime) => Ok(false),
            Err(Halt::Broken(error)) => Err(error.into()),
            Err(Halt::GivenUp(error)) => {
                tracing::warn!(causes = ?causes(&error), "DynamoDB kept failing; the next run continues the drain");
                Ok(false)
            }
        }
    }
}

impl Work for Drain<'_> {
    type Error = StoreError;

    fn is_done(&self) -> bool {
        self.in_hand.is_empty()
    }

    async fn round(&mut self) -> Round<StoreError> {
        let report = self.report;
        let marks = at_once(&mut self.in_hand, AT_ONCE, async |row| report.mark(row).await).await;
        let (mut done, mut failure) = (0, None);
        for (row, mark) in marks {
            match mark {
                Ok(Marked::Done) => self.outcome.drained += 1,
                Ok(Marked::Before | Marked::NoHead) => self.outcome.already_drained += 1,
                Err(error) => {
                    self.in_hand.push_back(row);
                    failure = Some(StoreError::worse(failure, error));
                    continue;
                }
            }
            done += 1;
        }
        Round { done, per_second: PER_SECOND, failure }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use object_store::memory::InMemory;
    use object_store::path::Path;
    use object_store::{ObjectStore, ObjectStoreExt as _};
    use payments_boot::Clock;
    use payments_files::{COLUMNS, hexadecimal};
    use payments_store::ReportFile;
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::stored::Found;

    const ROW: &str = "626e8292-8e84-575a-b684-0af73927405b,payer,shop,5,GBP,2026-11-20T00:00:00Z,2026-11-20,PROCESSED,tx-1,,,2026-11-20T01:02:03Z,";

    /// The number of rows read from a file that an operator made anew, with its size and its
    /// checksum; or the fault of the file.
    async fn rows_of(text: &str) -> Result<usize, String> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let bytes = gzip.finish().unwrap();
        let (attempt, published) = ("a".to_owned(), "reports/a".to_owned());
        let sha256 = hexadecimal(Sha256::digest(&bytes).as_slice());
        let file = ReportFile { attempt, published, bytes: bytes.len() as u64, sha256 };
        let files: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        files.put(&Path::from("reports/a"), bytes.into()).await.unwrap();
        // Longer than the test takes.
        let deadline = Deadline::before(4_000_000_000_000, &Clock::system());
        let found = Stored::check(&files, &file.published, &file, &deadline).await.unwrap();
        let Found::Intact(stored) = found else { panic!("{found:?}") };
        let (mut reading, mut count) = (Rows::new(stored), 0);
        while let Some(rows) = reading.next().await.map_err(|error| error.to_string())? {
            count += rows.len();
        }
        Ok(count)
    }

    #[tokio::test]
    async fn a_file_that_ends_within_a_row_is_altered() {
        let header = COLUMNS.join(",");
        for (text, want) in [
            (format!("{header}\r\n"), Some(0)),
            (format!("{header}\r\n{ROW}\r\n"), Some(1)),
            (format!("{header}\r\n{ROW}\r\n{ROW}"), None),
            (format!("{header}\r\n{ROW}\r\n626e8292"), None),
            (format!("{header}\r\n{ROW}\r\n\""), None),
            (header.clone(), None),
            (String::new(), None),
        ] {
            let found = rows_of(&text).await;
            let why = found.as_ref().err().cloned().unwrap_or_default();
            assert_eq!(found.ok(), want, "{text:?}: {why}");
            assert_eq!(why.contains("ends within a row"), want.is_none(), "{text:?}: {why}");
        }
    }
}
