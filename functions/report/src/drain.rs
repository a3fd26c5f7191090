//! The payments of a published file leave `unreported`: exactly those in the file, read back from it.

use std::io::Write as _;

use flate2::write::GzDecoder;
use futures::future::join_all;
use payments_boot::{Deadline, pace};
use payments_model::{Outage as _, OutageKind, causes};
use payments_store::StoreError;

use crate::rows::{ReportedRow, RowReader};
use crate::stored::Stored;
use crate::{Report, ReportError, RunReport};

/// How many payments are taken out at once.
const AT_ONCE: usize = 32;

/// How many payments are taken out per second. Each costs the table 1 unit and the index 1: a quarter of
/// the 4,000 that a new table takes, beside the 3 x 556 that the feed and its sweep need there, and with ten
/// shards 100 of the 1,000 that a shard's key takes. A report of 100,000 is drained in 100 s.
const PER_SECOND: u32 = 1_000;

/// How many compressed bytes are unpacked at once: some 400 rows of 200 bytes, at four to one.
const SLICE: usize = 16 * 1024;

/// A file on its way out of the index.
struct Drain<'r> {
    report: &'r Report,
    deadline: &'r Deadline,
    did: &'r mut RunReport,
    /// Read, and not yet taken out.
    in_hand: Vec<ReportedRow>,
    rows: u64,
}

impl Report {
    /// Takes the payments of a file of `rows` rows out of `unreported`. Says whether all are out; if not,
    /// the next invocation begins again, and finds the first ones gone.
    pub(crate) async fn drain(
        &self,
        file: Stored,
        rows: u64,
        deadline: &Deadline,
        did: &mut RunReport,
    ) -> Result<bool, ReportError> {
        let mut drain = Drain { report: self, deadline, did, in_hand: Vec::with_capacity(AT_ONCE), rows: 0 };
        if !drain.all_of(file.clone()).await? {
            return Ok(false);
        }
        // The checksum was right: this would be a fault of ours.
        if drain.rows == rows { Ok(true) } else { Err(file.altered("has another number of rows than was committed")) }
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
        if !(self.rows_of(&text, &mut reader, &file).await? && self.take_out().await?) {
            return Ok(false);
        }
        if reader.is_between_rows() { Ok(true) } else { Err(file.altered("ends within a row")) }
    }

    /// Takes out what rows end in a piece of the file.
    async fn rows_of(&mut self, mut text: &[u8], reader: &mut RowReader, file: &Stored) -> Result<bool, ReportError> {
        while let Some(row) = reader.read(&mut text).map_err(|why| file.altered(why))? {
            self.rows += 1;
            self.in_hand.push(row);
            if self.in_hand.len() == AT_ONCE && !self.take_out().await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes out what is in hand; what was throttled stays there, and is tried again a few times.
    async fn take_out(&mut self) -> Result<bool, ReportError> {
        let mut throttles = 0;
        while !self.in_hand.is_empty() {
            if self.deadline.has_come() {
                return Ok(false);
            }
            let (before, started) = (self.in_hand.len(), self.report.clock.instant());
            let trouble = self.take_out_once().await?;
            let elapsed = (self.report.clock.instant() - started).to_std().unwrap_or_default();
            let taken = u32::try_from(before - self.in_hand.len()).unwrap_or(u32::MAX);
            self.deadline.sleep(pace::wait(taken, elapsed, PER_SECOND)).await;
            let Some(error) = trouble else { continue };
            throttles = if self.in_hand.len() < before { 1 } else { throttles + 1 };
            let Some(wait) = pace::backoff(throttles) else {
                tracing::warn!(causes = ?causes(&error), "a drain is left to the next invocation");
                return Ok(false);
            };
            self.deadline.sleep(wait).await;
        }
        Ok(true)
    }

    async fn take_out_once(&mut self) -> Result<Option<StoreError>, StoreError> {
        let store = &self.report.store;
        let marks = join_all(self.in_hand.iter().map(|row| store.mark_reported(&row.head, &row.unreported))).await;
        let (mut trouble, mut broken) = (None, None);
        for (row, mark) in std::mem::take(&mut self.in_hand).into_iter().zip(marks) {
            match mark {
                Ok(true) => self.did.drained += 1,
                Ok(false) => self.did.already_drained += 1,
                Err(error) if error.kind() == OutageKind::Broken => broken = Some(error),
                Err(error) => {
                    self.in_hand.push(row);
                    trouble = Some(error);
                }
            }
        }
        broken.map_or(Ok(trouble), Err)
    }
}
