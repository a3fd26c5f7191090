//! Files of an undo: its plans, the results of their runs in parts, and the payments that were claimed.
//!
//! Each line of a plan or a part is a payment. The first line of a plan says which plan it is.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::mem;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use object_store::path::Path;
use payments_model::{AccountId, Currency, HeadKey, Money, PaymentId, Slot, SlotAt, Status, UndoId};
use serde::{Deserialize, Serialize};

use crate::kind::FileKind;

payments_model::kinds! {
    /// The end of a payment in the run of a plan.
    UndoEnd {
        /// The run cancelled it.
        Cancelled = "cancelled",
        /// Somebody else cancelled it.
        AlreadyCancelled = "already-cancelled",
        /// Its payee or amount is not that of the plan, so the run left it as it is.
        Amended = "amended",
        /// The sweep had claimed it, so its request was sent or will be.
        Claimed = "claimed",
        /// The transaction service had processed it.
        Processed = "processed",
        /// The transaction service had rejected it.
        Failed = "failed",
        /// Its create was cut off, and can no longer be completed: no payment will come of it.
        NeverCreated = "never-created",
        /// Its head or its details are lost.
        Lost = "lost",
        /// Its head cannot be read or changed.
        Unreadable = "unreadable",
    }
}

impl UndoEnd {
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|end| end.as_str() == name)
    }

    /// The status of a payment that the sweep had claimed, as the run found it. Of a payment that a restore made scheduled again, the
    /// request was sent: it is PENDING. `None` of others.
    #[must_use]
    pub fn claimed_status(self) -> Option<Status> {
        match self {
            Self::Claimed => Some(Status::Pending),
            Self::Processed => Some(Status::Processed),
            Self::Failed => Some(Status::Failed),
            Self::Cancelled
            | Self::AlreadyCancelled
            | Self::Amended
            | Self::NeverCreated
            | Self::Lost
            | Self::Unreadable => None,
        }
    }
}

/// The reason why bytes are not a file of an undo.
#[derive(Debug, thiserror::Error)]
pub enum UndoFileError {
    /// The bytes are not gzip, or not text.
    #[error("its text cannot be read")]
    Text(#[from] std::io::Error),
    /// A line is malformed.
    #[error("one of its lines cannot be read")]
    Line(#[from] serde_json::Error),
    /// A line has a value that is not a payment's.
    #[error("one of its lines is not a payment")]
    Payment,
    /// The file is of another plan.
    #[error("its first line names another plan")]
    OtherPlan,
}

/// A payment of a plan, as it was when it was planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRow {
    /// The key of its head.
    pub head: HeadKey,
    /// Its version; 0 without a head.
    pub version: u32,
    /// The account that is paid.
    pub payee: AccountId,
    /// The amount.
    pub money: Money,
    /// The status. `None` if its create was cut off, so that it has no head.
    pub status: Option<Status>,
}

#[derive(Debug, Serialize, Deserialize)]
struct About {
    undo: String,
    plan: u32,
    /// Why the plan may lack selected payments. Its approval has to know that, so the hash of the file is also of this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inexact: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    payment_id: String,
    version: u32,
    account_id: String,
    slot_at: String,
    payee_account_id: String,
    amount_minor: i64,
    currency: String,
    status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<String>,
}

impl Line {
    fn new(row: &PlanRow, end: Option<UndoEnd>) -> Self {
        Self {
            payment_id: row.head.slot.payment_id.to_string(),
            version: row.version,
            account_id: row.head.account.to_string(),
            slot_at: row.head.slot.at.to_string(),
            payee_account_id: row.payee.to_string(),
            amount_minor: row.money.amount.get(),
            currency: row.money.currency.to_string(),
            status: row.status.map(|status| status.to_string()),
            end: end.map(|end| end.to_string()),
        }
    }

    fn row(&self) -> Option<PlanRow> {
        let payment_id: PaymentId = self.payment_id.parse().ok()?;
        let at: SlotAt = self.slot_at.parse().ok()?;
        Some(PlanRow {
            head: HeadKey { account: self.account_id.parse().ok()?, slot: Slot { at, payment_id } },
            version: self.version,
            payee: self.payee_account_id.parse().ok()?,
            money: Money {
                amount: self.amount_minor.try_into().ok()?,
                currency: Currency::from_stored(&self.currency).ok()?,
            },
            status: self.status.as_deref().map(str::parse).transpose().ok()?,
        })
    }
}

/// The path of a plan: `undo/<id>/plan-<number>.jsonl.gz`.
#[must_use]
pub fn plan_path(id: &UndoId, plan: u32) -> Path {
    FileKind::UndoPlan.path(&format!("{id}/plan-{plan}"))
}

/// The path of ids that an operator has put: `undo/ids/<name>.txt`.
#[must_use]
pub fn ids_path(name: &str) -> Path {
    Path::from(format!("undo/ids/{name}.txt"))
}

/// The path of the part of results that begins with the payment at `place`: `undo/<id>/plan-<number>/<place, 9 digits>.jsonl.gz`.
#[must_use]
pub fn part_path(id: &UndoId, plan: u32, place: u64) -> Path {
    FileKind::UndoPart.path(&format!("{id}/plan-{plan}/{place:09}"))
}

/// The path of the payments that a run found claimed or settled: `undo/<id>/plan-<number>/claimed.csv`.
#[must_use]
pub fn claimed_path(id: &UndoId, plan: u32) -> Path {
    FileKind::UndoClaimed.path(&format!("{id}/plan-{plan}/claimed"))
}

/// Writes a plan.
#[derive(Debug)]
pub struct PlanWriter(GzEncoder<Vec<u8>>);

impl PlanWriter {
    /// Begins a plan. It is inexact if there are reasons why it may lack selected payments.
    ///
    /// # Errors
    /// No error is known: memory takes all bytes.
    pub fn new(id: &UndoId, plan: u32, inexact: &[String]) -> std::io::Result<Self> {
        let mut file = GzEncoder::new(Vec::new(), Compression::fast());
        serde_json::to_writer(&mut file, &About { undo: id.to_string(), plan, inexact: inexact.to_vec() })?;
        file.write_all(b"\n")?;
        Ok(Self(file))
    }

    /// Adds a payment.
    ///
    /// # Errors
    /// No error is known.
    pub fn add(&mut self, row: &PlanRow) -> std::io::Result<()> {
        write_line(&mut self.0, row, None)
    }

    /// Returns the file.
    ///
    /// # Errors
    /// No error is known.
    pub fn finish(self) -> std::io::Result<Vec<u8>> {
        self.0.finish()
    }
}

fn write_line(file: &mut GzEncoder<Vec<u8>>, row: &PlanRow, end: Option<UndoEnd>) -> std::io::Result<()> {
    serde_json::to_writer(&mut *file, &Line::new(row, end))?;
    file.write_all(b"\n")
}

/// Reads the payments of a plan one by one, because a plan may have a million.
#[derive(Debug)]
pub struct PlanReader<'b> {
    lines: Lines<BufReader<GzDecoder<&'b [u8]>>>,
    inexact: Vec<String>,
}

impl<'b> PlanReader<'b> {
    /// Begins to read a plan.
    ///
    /// # Errors
    /// [`UndoFileError`] if the file is damaged, or is another plan.
    pub fn new(id: &UndoId, plan: u32, bytes: &'b [u8]) -> Result<Self, UndoFileError> {
        let mut lines = BufReader::new(GzDecoder::new(bytes)).lines();
        let about: About = serde_json::from_str(&lines.next().transpose()?.unwrap_or_default())?;
        let is_ours = about.undo == id.as_str() && about.plan == plan;
        if is_ours { Ok(Self { lines, inexact: about.inexact }) } else { Err(UndoFileError::OtherPlan) }
    }

    /// The reasons why the plan may lack selected payments.
    #[must_use]
    pub fn inexact(&self) -> &[String] {
        &self.inexact
    }

    /// Returns the next payments, at most `most`. None are left if there are fewer.
    ///
    /// # Errors
    /// [`UndoFileError`] if a line is damaged.
    pub fn next_rows(&mut self, most: usize) -> Result<Vec<PlanRow>, UndoFileError> {
        self.lines.by_ref().take(most).map(|line| read_line(&line?).map(|(row, _)| row)).collect()
    }

    /// Skips payments.
    ///
    /// # Errors
    /// [`UndoFileError`] if the text cannot be read.
    pub fn skip(&mut self, count: u64) -> Result<(), UndoFileError> {
        for _ in 0..count {
            let Some(line) = self.lines.next() else { return Ok(()) };
            mem::drop(line?);
        }
        Ok(())
    }
}

fn read_line(line: &str) -> Result<(PlanRow, Option<UndoEnd>), UndoFileError> {
    let line: Line = serde_json::from_str(line)?;
    let end = line.end.as_deref().and_then(UndoEnd::from_name);
    Ok((line.row().ok_or(UndoFileError::Payment)?, end))
}

/// Encodes a part of results.
///
/// # Errors
/// No error is known.
pub fn encode_part(ends: &[(PlanRow, UndoEnd)]) -> std::io::Result<Vec<u8>> {
    let mut file = GzEncoder::new(Vec::new(), Compression::fast());
    for (row, end) in ends {
        write_line(&mut file, row, Some(*end))?;
    }
    file.finish()
}

/// Decodes a part of results.
///
/// # Errors
/// [`UndoFileError`] if it is damaged.
pub fn decode_part(bytes: &[u8]) -> Result<Vec<(PlanRow, UndoEnd)>, UndoFileError> {
    let read = |line: std::io::Result<String>| {
        let (row, end) = read_line(&line?)?;
        Ok((row, end.ok_or(UndoFileError::Payment)?))
    };
    BufReader::new(GzDecoder::new(bytes)).lines().map(read).collect()
}

/// The claimed payments among results as lines of CSV, also settled ones, with their statuses. The header comes before the first lines.
///
/// # Errors
/// No error is known.
pub fn claimed_csv(ends: &[(PlanRow, UndoEnd)], with_header: bool) -> Result<Vec<u8>, csv::Error> {
    let mut csv = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    if with_header {
        csv.write_record(["paymentId", "accountId", "payeeAccountId", "amountMinor", "currency", "status"])?;
    }
    for (row, status) in ends.iter().filter_map(|(row, end)| Some((row, end.claimed_status()?))) {
        csv.write_record([
            row.head.slot.payment_id.to_string(),
            row.head.account.to_string(),
            row.payee.to_string(),
            row.money.amount.get().to_string(),
            row.money.currency.to_string(),
            status.to_string(),
        ])?;
    }
    csv.into_inner().map_err(|error| error.into_error().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(status: Option<Status>) -> PlanRow {
        let payment_id = "626e8292-8e84-575a-b684-0af73927405b".parse().unwrap();
        let slot = Slot { at: "2026-12-01T00:00:00Z".parse().unwrap(), payment_id };
        PlanRow {
            head: HeadKey { account: "tenant".parse().unwrap(), slot },
            version: 2,
            payee: "landlord".parse().unwrap(),
            money: Money { amount: 500.try_into().unwrap(), currency: Currency::from_stored("GBP").unwrap() },
            status,
        }
    }

    #[test]
    fn a_plan_is_read_as_it_was_written_and_no_other_is() {
        let (id, rows) = ("0123456789abcdef".parse().unwrap(), [row(Some(Status::Scheduled)), row(None)]);
        let mut file = PlanWriter::new(&id, 3, &["a gap".to_owned()]).unwrap();
        rows.iter().for_each(|row| file.add(row).unwrap());
        let file = file.finish().unwrap();
        let mut read = PlanReader::new(&id, 3, &file).unwrap();
        assert_eq!((read.next_rows(3).unwrap(), read.inexact()), (rows.to_vec(), ["a gap".to_owned()].as_slice()));
        let mut read = PlanReader::new(&id, 3, &file).unwrap();
        read.skip(1).unwrap();
        assert_eq!(read.next_rows(1).unwrap(), rows[1..]);
        assert_eq!(read.next_rows(1).unwrap(), []);
        assert!(matches!(PlanReader::new(&id, 4, &file), Err(UndoFileError::OtherPlan)));
        assert!(matches!(PlanReader::new(&id, 3, b"plan"), Err(UndoFileError::Text(_))));
        assert_eq!(plan_path(&id, 3).as_ref(), "undo/0123456789abcdef/plan-3.jsonl.gz");
    }

    #[test]
    fn a_part_is_read_as_it_was_written_and_claimed_payments_are_listed() {
        let ends = UndoEnd::ALL.iter().map(|end| (row(None), *end)).collect::<Vec<_>>();
        assert_eq!(decode_part(&encode_part(&ends).unwrap()).unwrap(), ends);
        let csv = String::from_utf8(claimed_csv(&ends, true).unwrap()).unwrap();
        let lines: Vec<_> = csv.split_terminator("\r\n").collect();
        assert_eq!(lines[0], "paymentId,accountId,payeeAccountId,amountMinor,currency,status");
        let line = |status| format!("626e8292-8e84-575a-b684-0af73927405b,tenant,landlord,500,GBP,{status}");
        assert_eq!(lines[1..], ["PENDING", "PROCESSED", "FAILED"].map(line));
    }
}
