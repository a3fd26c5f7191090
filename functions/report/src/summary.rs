//! Counts and sums of a report: per payee, status and currency.

use std::collections::BTreeMap;

use payments_files::SettledHead;
use payments_model::{AccountId, Currency, Status};
use serde::Serialize;

use crate::error::ReportError;
use crate::upload::Upload;

/// The bytes of a summary's text that are uploaded at once.
const PIECE: usize = 64 * 1024;

/// The sums of a report while it is written, at most one per row. A sum takes about 160 bytes, with an account id of at
/// most 48 bytes: 16 MB for 100,000 different payees. The text is longer and never in memory as a whole.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    sums: BTreeMap<(AccountId, Status, Currency), Sum>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    count: u64,
    minor: i128,
}

/// The content of a summary's file.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SummaryFile<'s> {
    /// The run's number.
    pub(crate) run: u64,
    /// The name of the published report.
    pub(crate) report: &'s str,
    pub(crate) rows: u64,
    pub(crate) first_settled_at: String,
    pub(crate) last_settled_at: String,
    /// Empty until [`Summary::write`] adds the payees to the text.
    pub(crate) payees: &'s [PayeeLine<'s>],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PayeeLine<'s> {
    payee_account_id: &'s str,
    status: &'static str,
    currency: &'s str,
    count: u64,
    sum_minor: i128,
}

impl Summary {
    /// Adds a settlement.
    pub(crate) fn add(&mut self, settlement: &SettledHead) -> Result<(), ReportError> {
        let head = &settlement.head;
        let sum = self.sums.entry((head.payee.clone(), head.state.status(), head.money.currency)).or_default();
        sum.count += 1;
        sum.minor = sum.minor.checked_add(head.money.amount.get().into()).ok_or(ReportError::SumOutOfRange)?;
        Ok(())
    }

    fn lines(&self) -> impl Iterator<Item = PayeeLine<'_>> {
        self.sums.iter().map(|((payee, status, currency), sum)| PayeeLine {
            payee_account_id: payee.as_str(),
            status: status.as_str(),
            currency: currency.code(),
            count: sum.count,
            sum_minor: sum.minor,
        })
    }

    /// Writes the summary as JSON, in order of payees, statuses and currencies. Sums are integers, which a reader must
    /// not parse as floats. The array of payees is opened and closed by hand, because the whole text can have 20 MB.
    pub(crate) async fn write(&self, file: &SummaryFile<'_>, upload: &mut Upload) -> Result<(), ReportError> {
        let mut text = file.opening()?;
        let mut before = "\n    ";
        for line in self.lines() {
            text.push_str(before);
            text.push_str(&pretty(&line)?.replace('\n', "\n    "));
            before = ",\n    ";
            if text.len() >= PIECE {
                upload.write(std::mem::take(&mut text).into_bytes()).await?;
            }
        }
        text.push_str("\n  ]\n}\n");
        upload.write(text.into_bytes()).await
    }
}

impl SummaryFile<'_> {
    /// Returns the text up to the first payee.
    fn opening(&self) -> std::io::Result<String> {
        let mut text = pretty(self)?;
        text.truncate(text.len() - "]\n}".len());
        Ok(text)
    }
}

fn pretty(value: &impl Serialize) -> std::io::Result<String> {
    Ok(serde_json::to_string_pretty(value)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;
    use object_store::{ObjectStore, ObjectStoreExt as _};

    use super::*;

    #[tokio::test]
    async fn the_streamed_text_equals_the_text_written_at_once() {
        for payees in [1, 2, 3_000] {
            let mut summary = Summary::default();
            for n in 0..payees {
                let key = |currency: &str| {
                    (format!("payee-{n}").parse().unwrap(), Status::Processed, currency.parse().unwrap())
                };
                summary.sums.insert(key("EUR"), Sum { count: n, minor: i128::from(n) << 64 });
                summary.sums.insert(key("GBP"), Sum { count: 1, minor: -1 });
            }
            let (first_settled_at, last_settled_at) = ("first".to_owned(), "last".to_owned());
            let file =
                SummaryFile { run: 1, report: "r", rows: payees, first_settled_at, last_settled_at, payees: &[] };
            let lines: Vec<PayeeLine<'_>> = summary.lines().collect();
            let want = pretty(&SummaryFile { payees: &lines, ..file.clone() }).unwrap() + "\n";

            let files: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
            let mut upload = Upload::begin(&files, "summary".to_owned()).unwrap();
            summary.write(&file, &mut upload).await.unwrap();
            let stored = upload.finish("published".to_owned()).await.unwrap();
            let text = files.get(&"summary".into()).await.unwrap().bytes().await.unwrap();
            assert_eq!(std::str::from_utf8(&text).unwrap(), want, "{payees}");
            assert_eq!(stored.bytes, u64::try_from(want.len()).unwrap());
        }
    }
}
