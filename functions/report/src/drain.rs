//! Removes the payments of a published file from `unreported`, exactly those read back from the file, and lets their
//! heads expire.

use std::io::Write as _;

use chrono::TimeDelta;
use flate2::write::GzDecoder;
use futures::future::join_all;
use payments_boot::{Deadline, Retries, Stop};
use payments_model::{Outage as _, OutageKind, causes};
use payments_store::StoreError;

use crate::rows::{ReportedRow, RowReader};
use crate::stored::Stored;
use crate::{Report, ReportError, ReportOutcome};

/// The payments removed at once.
const AT_ONCE: usize = 32;

/// The most payments removed per second. Each costs the table 1 unit and the index 1. `docs/performance.md`
/// shows that their partitions accept it beside the feed, the sweep and the settlements. A report of 100,000
/// is drained in 100 s.
const PER_SECOND: u32 = 1_000;

/// How long a head stays in the hot table after its report, or after its date is over in every time zone if that is later: the
/// bank's own would add a fifth of a megabyte of time zones to the program. `ingest` completes a missing head until 30 minutes
/// after the date, so no late head can bring an expired payment back. DynamoDB deletes what has expired within days, free of
/// charge.
const STAYS: TimeDelta = TimeDelta::hours(25);

/// The compressed bytes unpacked at once: about 400 rows of 200 bytes, at four to one.
const SLICE: usize = 16 * 1024;

/// The drain of one file.
struct Drain<'r> {
    report: &'r Report,
    deadline: &'r Deadline,
    outcome: &'r mut ReportOutcome,
    /// Read, and not yet removed.
    in_hand: Vec<ReportedRow>,
    rows: u64,
}

impl Report {
    /// Removes the payments of a file of `rows` rows from `unreported`. Returns whether all are removed. If
    /// not, the next invocation starts again and finds the first ones removed.
    pub(crate) async fn drain(
        &self,
        file: Stored,
        rows: u64,
        deadline: &Deadline,
        outcome: &mut ReportOutcome,
    ) -> Result<bool, ReportError> {
        let mut drain = Drain { report: self, deadline, outcome, in_hand: Vec::with_capacity(AT_ONCE), rows: 0 };
        if !drain.all_of(file.clone()).await? {
            return Ok(false);
        }
        // The checksum was right, so a different count would be a bug.
        if drain.rows == rows { Ok(true) } else { Err(file.altered("has a different number of rows than committed")) }
    }
}

impl Drain<'_> {
    async fn all_of(&mut self, mut file: Stored) -> Result<bool, ReportError> {
        let (mut gzip, mut reader) = (GzDecoder::new(Vec::new()), RowReader::new());
        let faulty = |error: std::io::Error| format!("cannot be unpacked: {error}");
        while let Some(piece) = file.next().await? {
            for slice in piece.chunks(SLICE) {
                gzip.write_all(slice).map_err(|error| file.altered(&faulty(error)))?;
                let text = std::mem::take(gzip.get_mut());
                if !self.rows_of(&text, &mut reader, &file).await? {
                    return Ok(false);
                }
            }
        }
        let text = gzip.finish().map_err(|error| file.altered(&faulty(error)))?;
        if !(self.rows_of(&text, &mut reader, &file).await? && self.remove().await?) {
            return Ok(false);
        }
        if reader.is_between_rows() { Ok(true) } else { Err(file.altered("ends within a row")) }
    }

    /// Removes the payments of the rows that end in a piece of the file.
    async fn rows_of(&mut self, mut text: &[u8], reader: &mut RowReader, file: &Stored) -> Result<bool, ReportError> {
        while let Some(row) = reader.read(&mut text).map_err(|why| file.altered(why))? {
            self.rows += 1;
            self.in_hand.push(row);
            if self.in_hand.len() == AT_ONCE && !self.remove().await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes the payments in hand, with retries. Returns whether all are removed.
    async fn remove(&mut self) -> Result<bool, ReportError> {
        let mut retries = Retries::default();
        while !self.in_hand.is_empty() {
            if self.deadline.has_come() {
                return Ok(false);
            }
            let (before, started) = (self.in_hand.len(), self.report.clock.instant());
            let failure = self.remove_once().await?;
            let removed = u32::try_from(before - self.in_hand.len()).unwrap_or(u32::MAX);
            self.deadline.keep_rate(removed, started, PER_SECOND).await;
            let Some(error) = failure else { continue };
            if removed > 0 {
                retries = Retries::default();
            }
            match retries.wait(&error, self.deadline).await {
                Ok(()) => {}
                Err(Stop::OutOfTime) => return Ok(false),
                Err(Stop::GivenUp | Stop::Broken) => {
                    tracing::warn!(causes = ?causes(&error), "DynamoDB kept failing; the next run continues the drain");
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    async fn remove_once(&mut self) -> Result<Option<StoreError>, StoreError> {
        let (store, now) = (&self.report.store, self.report.clock.now());
        let marks = join_all(self.in_hand.iter().map(|row| {
            let expires = row.due_date.over_everywhere().max(now).saturating_add(STAYS);
            store.mark_reported(&row.head, &row.unreported, expires)
        }));
        let marks = marks.await;
        let (mut failure, mut broken) = (None, None);
        for (row, mark) in std::mem::take(&mut self.in_hand).into_iter().zip(marks) {
            match mark {
                Ok(true) => self.outcome.drained += 1,
                Ok(false) => self.outcome.already_drained += 1,
                Err(error) if error.kind() == OutageKind::Broken => broken = Some(error),
                Err(error) => {
                    self.in_hand.push(row);
                    failure = Some(error);
                }
            }
        }
        broken.map_or(Ok(failure), Err)
    }
}
