//! The reports, the hot table and the counters after the night.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use flate2::read::GzDecoder;
use lambda_runtime::Context;
use payments_bank::Functions;
use payments_machine::Handlers as _;
use payments_machine::client::Client;
use payments_model::{BusinessDate, ShardCount, Status};
use payments_store::{DueRange, DueUntil, Store};
use serde_json::{Value, json};

/// The state after the night.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Night {
    /// The folder of the published reports.
    pub(super) reports: PathBuf,
    /// The number of report files.
    pub(super) files: u64,
    /// Settlements in them.
    pub(super) reported: u64,
    /// Settlements that are in them more than once.
    pub(super) reported_twice: u64,
    /// Payments of the day that are still in the hot table.
    pub(super) left_in_hot: u64,
    /// Payments of the day that are in the long-term table alone, as the counters have them.
    pub(super) archived: u64,
    /// Whether the counters of the day equal a recount and the list of the day.
    pub(super) counters_equal_recount: bool,
    /// A transaction id, and the payment that was found by it.
    pub(super) read_back: Option<(String, String)>,
}

/// Returns how many payments of the day are in the hot table's index, of any status.
pub(super) async fn left_in_hot(store: &Store, day: BusinessDate, shards: ShardCount) -> Result<u64> {
    let mut left = 0;
    for status in Status::ALL {
        for shard in shards.all() {
            let (count, more) =
                store.due_count(&DueRange { shard, status, until: DueUntil::Date(day), after: None }).await?;
            left += count.max(u64::from(more));
        }
    }
    Ok(left)
}

/// Returns how many settlements are in no report yet.
pub(super) async fn unreported(store: &Store, shards: ShardCount) -> Result<usize> {
    let mut waiting = 0;
    for shard in shards.all() {
        waiting += store.unreported_page(shard, None, 1).await?.rows.len();
    }
    Ok(waiting)
}

impl Night {
    /// Reads the report files of a folder.
    pub(super) fn read_reports(&mut self, folder: &Path) -> Result<()> {
        self.reports = folder.join("reports");
        if !self.reports.exists() {
            return Ok(());
        }
        let mut seen = HashSet::new();
        for entry in fs::read_dir(&self.reports).with_context(|| self.reports.display().to_string())? {
            let path = entry?.path();
            if !path.to_string_lossy().ends_with(".csv.gz") {
                continue;
            }
            self.files += 1;
            let mut rows = csv::Reader::from_reader(GzDecoder::new(File::open(&path)?));
            for row in rows.records() {
                let id = row?.get(0).map(str::to_owned).context("a row of a report has no payment")?;
                self.reported += 1;
                self.reported_twice += u64::from(!seen.insert(id));
            }
        }
        Ok(())
    }

    /// Compares the counters of the day with a recount and with its list.
    pub(super) async fn compare_counters(
        &mut self,
        functions: &Functions,
        client: &Client,
        context: Context,
        day: BusinessDate,
        listed: &Value,
    ) -> Result<()> {
        let input = json!({ "action": "recount", "from": day.to_string(), "to": day.to_string() });
        let recount = functions.scheduled("recount", input, context).await.map_err(anyhow::Error::msg)?;
        let counts = client.get(&format!("/counts?from={day}&to={day}")).await?;
        let counts = &counts["counts"][0];
        ensure!(counts["date"] == day.to_string(), "there are no counts of {day}: {counts}");
        self.archived = counts["archived"].as_u64().unwrap_or(0);
        self.counters_equal_recount = recount["exact"] == 1 && counts["byStatus"] == *listed;
        Ok(())
    }

    /// Finds a payment by its transaction id.
    pub(super) async fn read_back(&mut self, client: &Client, transaction: Option<&str>) -> Result<()> {
        let Some(transaction) = transaction else { return Ok(()) };
        let found = client.bank().find_by_transaction(transaction).await?;
        let payment = found.first().filter(|payment| payment.transaction_id.as_deref() == Some(transaction));
        let payment = payment.with_context(|| format!("{transaction} found other payments: {found:?}"))?;
        self.read_back = Some((transaction.to_owned(), payment.payment_id.clone()));
        Ok(())
    }
}
