//! Counts and sums of a report: per payee, status and currency.

use std::collections::BTreeMap;

use payments_model::{AccountId, Currency, Status, UtcSecond};
use serde::Serialize;

use crate::ReportError;
use crate::rows::Settlement;
use crate::upload::Upload;

/// The bytes of a summary's text that are uploaded at once.
const PIECE: usize = 64 * 1024;

/// The sums of a report while it is written, at most one per row. A sum takes about 160 bytes, with an
/// account id of at most 48 bytes: 16 MB for 100,000 different payees. The text is longer and never in
/// memory as a whole.
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
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SummaryFile<'s> {
    run: u64,
    report: &'s str,
    rows: u64,
    first_settled_at: String,
    last_settled_at: String,
    payees: &'s [PayeeLine<'s>],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PayeeLine<'s> {
    payee_account_id: &'s str,
    status: &'static str,
    currency: &'s str,
    count: u64,
    sum_minor: i128,
}

/// The fields of a summary other than its payees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heading<'h> {
    /// The run's number.
    pub(crate) run: u64,
    /// The name of the published report.
    pub(crate) report: &'h str,
    /// The number of its settlements.
    pub(crate) rows: u64,
    /// The instants of its first and last settlement.
    pub(crate) span: (UtcSecond, UtcSecond),
}

impl Summary {
    /// Adds a settlement.
    pub(crate) fn add(&mut self, settlement: &Settlement) -> Result<(), ReportError> {
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

    /// Writes the summary as JSON, in order of payees, statuses and currencies. Sums are integers, which a
    /// reader must not parse as floats. The array of payees is opened and closed by hand, because the whole
    /// text can have 20 MB.
    pub(crate) async fn write(&self, heading: Heading<'_>, upload: &mut Upload) -> Result<(), ReportError> {
        let mut text = heading.opening()?;
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

impl<'h> Heading<'h> {
    fn over(self, payees: &'h [PayeeLine<'h>]) -> SummaryFile<'h> {
        SummaryFile {
            run: self.run,
            report: self.report,
            rows: self.rows,
            first_settled_at: self.span.0.to_string(),
            last_settled_at: self.span.1.to_string(),
            payees,
        }
    }

    /// Returns the text up to the first payee.
    fn opening(self) -> std::io::Result<String> {
        let mut text = pretty(&self.over(&[]))?;
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
            let heading = Heading { run: 1, report: "r", rows: payees, span: (UtcSecond::MIN, UtcSecond::MIN) };
            let lines: Vec<PayeeLine<'_>> = summary.lines().collect();
            let want = pretty(&heading.over(&lines)).unwrap() + "\n";

            let files: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
            let mut upload = Upload::begin(&files, "summary".to_owned()).unwrap();
            summary.write(heading, &mut upload).await.unwrap();
            let file = upload.finish("published".to_owned()).await.unwrap();
            let text = files.get(&"summary".into()).await.unwrap().bytes().await.unwrap();
            assert_eq!(std::str::from_utf8(&text).unwrap(), want, "{payees}");
            assert_eq!(file.bytes, u64::try_from(want.len()).unwrap());
        }
    }
}
