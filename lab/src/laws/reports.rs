//! The law of reports: each settled payment has one row, which equals its head, and summaries add up their rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use flate2::read::GzDecoder;
use futures::TryStreamExt as _;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};
use payments_machine::layers::attributes::{Key, text};
use serde_json::{Value, json};

use crate::facts::heads::{due_of, id_of, is_settled};

/// A row of a report, by the names of its columns.
type Row = BTreeMap<String, String>;

/// A published report with its summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The ids of the payments in the report, row by row.
    pub payments: Vec<String>,
    /// The report's rows, by the names of their columns.
    pub rows: Vec<BTreeMap<String, String>>,
    /// The report's summary.
    pub summary: Value,
    /// The bytes of the report's file.
    pub bytes: Vec<u8>,
}

/// Returns the published reports by file name.
///
/// # Errors
/// An error if a report or its summary cannot be read.
pub async fn published(files: &Arc<dyn ObjectStore>) -> Result<BTreeMap<String, Published>> {
    let found: Vec<ObjectMeta> = files.list(Some(&Path::from("reports"))).try_collect().await?;
    let mut published = BTreeMap::new();
    for name in found.into_iter().map(|file| file.location).filter(|name| name.as_ref().ends_with(".csv.gz")) {
        let bytes = files.get(&name).await?.bytes().await?.to_vec();
        let mut reader = csv::Reader::from_reader(GzDecoder::new(bytes.as_slice()));
        let rows: Vec<BTreeMap<String, String>> = reader.deserialize().collect::<Result<_, _>>()?;
        let id = |row: &BTreeMap<String, String>| row.get("paymentId").cloned();
        let payments = rows.iter().map(id).collect::<Option<_>>().context("a row of a report has no payment")?;
        let summary = Path::from(name.as_ref().replace(".csv.gz", ".summary.json"));
        let summary = serde_json::from_slice(&files.get(&summary).await?.bytes().await?)?;
        published.insert(name.to_string(), Published { payments, rows, summary, bytes });
    }
    Ok(published)
}

/// Checks the published reports against the heads of both tables. Returns the violations.
pub(crate) fn check(published: &BTreeMap<String, Published>, heads: &BTreeMap<&Key, &Value>) -> Vec<String> {
    let mut found = Vec::new();
    let mut rows: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for (name, report) in published {
        report.payments.iter().zip(&report.rows).for_each(|(id, row)| rows.entry(id).or_default().push(row));
        let sums = sums(&report.rows);
        if report.summary["payees"] != sums || report.summary["rows"] != report.rows.len() {
            found.push(format!("the summary of {name} is {}, and its rows add up to {sums}", report.summary));
        }
    }
    for (key, head) in heads {
        let (id, status) = (id_of(&key.1), text(head, "status"));
        let of_head = rows.remove(id).unwrap_or_default();
        if of_head.len() != usize::from(is_settled(status)) {
            found.push(format!("{id} is {status} and was reported {} times", of_head.len()));
        }
        let right = row_of(key, head);
        let wrong = of_head.into_iter().filter(|row| **row != right);
        found.extend(wrong.map(|row| format!("{id} was reported as {row:?} and is {right:?}")));
    }
    found.extend(rows.keys().map(|id| format!("{id} was reported and does not exist")));
    found
}

/// Returns the row that a report must have for a head.
fn row_of((pk, sk): &Key, head: &Value) -> Row {
    let number = head["amountMinor"]["N"].as_str().unwrap_or_default();
    let (due_date, due_at) = due_of(head);
    let columns = [
        ("paymentId", id_of(sk)),
        ("accountId", pk.strip_prefix("ACCT#").unwrap_or_default()),
        ("amountMinor", number),
        ("dueAt", due_at),
        ("dueDate", due_date),
    ];
    let same = [
        "payeeAccountId",
        "currency",
        "status",
        "transactionId",
        "failureCode",
        "failureReason",
        "settledAt",
        "reference",
    ];
    let same = same.map(|name| (name, text(head, name)));
    columns.into_iter().chain(same).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Returns the sums of rows in a summary's form: by payee, status and currency, PROCESSED before FAILED.
fn sums(rows: &[Row]) -> Value {
    let mut sums: BTreeMap<(&str, bool, &str), (u64, i64)> = BTreeMap::new();
    for row in rows {
        let value = |name: &str| row.get(name).map_or("", String::as_str);
        let sum = sums.entry((value("payeeAccountId"), value("status") == "FAILED", value("currency"))).or_default();
        *sum = (sum.0 + 1, sum.1 + value("amountMinor").parse::<i64>().unwrap_or(0));
    }
    let line = |((payee, failed, currency), (count, sum)): (&(&str, bool, &str), &(u64, i64))| {
        let status = if *failed { "FAILED" } else { "PROCESSED" };
        json!({ "payeeAccountId": payee, "status": status, "currency": currency, "count": count, "sumMinor": sum })
    };
    sums.iter().map(line).collect()
}
