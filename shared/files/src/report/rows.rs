//! Settlements as rows of CSV (RFC 4180), written and read.

use csv_core::ReadRecordResult;
use payments_model::{BusinessDate, DuePayment, Failure, FailureCode, Head, Reference, TransactionId, UtcSecond};
use payments_store::UnreportedSort;

/// The columns, in order.
pub const COLUMNS: [&str; 13] = [
    "paymentId",
    "accountId",
    "payeeAccountId",
    "amountMinor",
    "currency",
    "dueAt",
    "dueDate",
    "status",
    "transactionId",
    "failureCode",
    "failureReason",
    "settledAt",
    "reference",
];

/// The columns that are read back: those that locate a payment's head, its key in `unreported`, its date, and the code of
/// its failure.
const PAYMENT_ID: usize = 0;
const ACCOUNT_ID: usize = 1;
const DUE_AT: usize = 5;
const DUE_DATE: usize = 6;
const FAILURE_CODE: usize = 9;
const SETTLED_AT: usize = 11;

/// The bytes of the longest row without quotes: ids of 36, 48 and 48, an amount of 19, a currency of 3,
/// instants of 20 and 20, a date of 10, a status of 9, a code of 4, a reason of 105, and a reference of 35. A
/// row with a reason has no transaction id. The header is shorter.
const LONGEST_ROW: usize = 36 + 48 + 48 + 19 + 3 + 20 + 20 + 10 + 9 + 4 + 105 + 35;

/// One byte and one field more: `csv_core` reports a buffer without free space as full.
const ROOM: usize = LONGEST_ROW + 1;
const FIELDS: usize = COLUMNS.len() + 1;

/// A settled payment that is not reported yet.
#[derive(Debug, Clone)]
pub struct SettledHead {
    /// Its head.
    pub head: Head,
    /// The time of its settlement.
    pub settled_at: UtcSecond,
}

impl SettledHead {
    /// Returns the payment if its head is still unreported under the index entry's key.
    pub fn verified(head: Head, unreported: &UnreportedSort) -> Option<Self> {
        let settled_at = head.settled_at().filter(|_| head.unreported)?;
        let key = UnreportedSort { settled_at, payment_id: head.payment_id };
        (key == *unreported).then_some(Self { head, settled_at })
    }

    fn fields(&self) -> [String; COLUMNS.len()] {
        let head = &self.head;
        [
            head.payment_id.to_string(),
            head.account.to_string(),
            head.payee.to_string(),
            head.money.amount.get().to_string(),
            head.money.currency.to_string(),
            head.due_at.to_string(),
            head.due_date.to_string(),
            head.state.status().to_string(),
            head.transaction_id().map(TransactionId::to_string).unwrap_or_default(),
            head.failure().map(|failure| failure.code().to_string()).unwrap_or_default(),
            head.failure().map(Failure::reason).unwrap_or_default().to_owned(),
            self.settled_at.to_string(),
            head.reference.as_ref().map(Reference::to_string).unwrap_or_default(),
        ]
    }
}

/// Writes settlements as CSV, optionally with the header.
///
/// # Errors
/// No error is known: memory takes all bytes.
pub fn csv_of(settlements: &[SettledHead], with_header: bool) -> std::io::Result<Vec<u8>> {
    let mut csv = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    if with_header {
        csv.write_record(COLUMNS)?;
    }
    for settlement in settlements {
        csv.write_record(settlement.fields())?;
    }
    csv.into_inner().map_err(csv::IntoInnerError::into_error)
}

/// The columns of a row that are read back: those that locate its payment's head, its key in
/// `unreported`, its date, and the code of its failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedRow {
    /// The payment and its due time.
    pub payment: DuePayment,
    /// The time of its settlement, and its id.
    pub unreported: UnreportedSort,
    /// Its due date.
    pub due_date: BusinessDate,
    /// The code of its failure, if it failed.
    pub failure_code: Option<FailureCode>,
}

/// Reads rows from a file in pieces, which may end anywhere.
#[derive(Debug)]
pub struct RowReader {
    csv: csv_core::Reader,
    /// The current row, and where its fields end.
    row: Box<[u8; ROOM]>,
    row_bytes: usize,
    ends: [usize; FIELDS],
    fields: usize,
    /// Whether a row has begun, if only with a quotation mark.
    is_within: bool,
    header_seen: bool,
}

impl Default for RowReader {
    /// Creates a reader at the start of a file.
    fn default() -> Self {
        Self {
            csv: csv_core::Reader::new(),
            row: Box::new([0; ROOM]),
            row_bytes: 0,
            ends: [0; FIELDS],
            fields: 0,
            is_within: false,
            header_seen: false,
        }
    }
}

impl RowReader {
    /// Reads the next row and removes it from `input`. Returns `None` if the piece ends before the row does.
    ///
    /// # Errors
    /// The fault of the row.
    pub fn read(&mut self, input: &mut &[u8]) -> Result<Option<ReportedRow>, &'static str> {
        // To `csv_core`, an empty input is the end of the file.
        while !input.is_empty() {
            let (result, used, written, ended) =
                self.csv.read_record(input, &mut self.row[self.row_bytes..], &mut self.ends[self.fields..]);
            self.is_within |= input[..used].iter().any(|byte| !b"\r\n".contains(byte));
            *input = &input[used..];
            self.row_bytes += written;
            self.fields += ended;
            match result {
                ReadRecordResult::InputEmpty | ReadRecordResult::End => {}
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    return Err("has a row that is too long");
                }
                ReadRecordResult::Record => {
                    let row = self.parse();
                    (self.row_bytes, self.fields, self.is_within) = (0, 0, false);
                    if std::mem::replace(&mut self.header_seen, true) {
                        return row.map(Some);
                    }
                }
            }
        }
        Ok(None)
    }

    /// Whether the file may end here: after the header, and not within a row.
    pub fn is_between_rows(&self) -> bool {
        self.header_seen && !self.is_within
    }

    fn parse(&self) -> Result<ReportedRow, &'static str> {
        let parse = || {
            let () = (self.fields == COLUMNS.len()).then_some(())?;
            let payment = DuePayment {
                // As it was stored: not every rule of today applied then.
                account: self.field(ACCOUNT_ID)?.parse().ok()?,
                payment_id: self.field(PAYMENT_ID)?.parse().ok()?,
                due_at: self.field(DUE_AT)?.parse().ok()?,
            };
            let unreported =
                UnreportedSort { settled_at: self.field(SETTLED_AT)?.parse().ok()?, payment_id: payment.payment_id };
            let due_date = self.field(DUE_DATE)?.parse().ok()?;
            let code = Some(self.field(FAILURE_CODE)?).filter(|code| !code.is_empty());
            let failure_code = code.map(str::parse).transpose().ok()?;
            Some(ReportedRow { payment, unreported, due_date, failure_code })
        };
        parse().ok_or("has a row that is not a settlement")
    }

    fn field(&self, at: usize) -> Option<&str> {
        let end = *self.ends[..self.fields].get(at)?;
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        std::str::from_utf8(self.row.get(begin..end)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_wherever_pieces_end() {
        let (id, due_at) = ("626e8292-8e84-575a-b684-0af73927405b", "2026-11-20T00:00:00Z");
        let reason = "r".repeat(105).replacen("rrrr", "\r\n\",", 1).replace('"', "\"\"");
        let account = "a".repeat(48);
        let long = format!(
            "{id},{account},{account},9007199254740991,GBP,{due_at},2026-11-20,PROCESSED,,AM04,\"{reason}\",2026-11-20T01:02:03Z"
        );
        let beside = format!("{long},\"{},\"", "R".repeat(34));
        let text = format!("{}\r\n{long},\r\n{beside}\r\n", COLUMNS.join(","));
        for piece in 1..=text.len() {
            let (mut reader, mut rows) = (RowReader::default(), Vec::new());
            for mut input in text.as_bytes().chunks(piece) {
                while let Some(row) = reader.read(&mut input).unwrap() {
                    rows.push(row);
                }
            }
            assert!(reader.is_between_rows(), "pieces of {piece}");
            let [one, other] = rows.as_slice() else { panic!("{} rows from pieces of {piece}", rows.len()) };
            assert_eq!(one, other);
            assert_eq!(one.unreported.to_string(), format!("202611200100#2026-11-20T01:02:03Z#{id}"));
            assert_eq!(one.payment.account.as_str(), account);
            assert_eq!(one.failure_code.as_ref().map(FailureCode::as_str), Some("AM04"));
            assert_eq!(
                (one.payment.payment_id.to_string(), one.payment.due_at.to_string()),
                (id.to_owned(), due_at.to_owned())
            );
        }
    }

    #[test]
    fn invalid_rows_are_rejected() {
        let header = COLUMNS.join(",");
        for row in [
            ",".repeat(11),
            ",".repeat(12),
            ",".repeat(13),
            "x".to_owned(),
            "x".repeat(600),
            "a,b,c,d,e,f,g,h,i,j,k,l".to_owned(),
        ] {
            let text = format!("{header}\r\n{row}\r\n");
            assert!(RowReader::default().read(&mut text.as_bytes()).is_err(), "{row}");
        }
        let mut reader = RowReader::default();
        assert_eq!(reader.read(&mut format!("{header}\r\n626e").as_bytes()), Ok(None));
        assert!(!reader.is_between_rows());
    }
}
