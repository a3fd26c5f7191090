//! The reports that were published since the restored instant: their payments wait for no other report.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use futures::TryStreamExt as _;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};
use payments_files::PublishedReport;
use payments_store::ReportRun;

use super::known::Payments;

/// The bucket's folder of reports.
const FOLDER: &str = "reports";

/// Reads the reports of a folder, a copy of the bucket's `reports`. Notes the time of settlement of each listed
/// payment. Returns the last run.
pub(crate) async fn read(files: &Arc<dyn ObjectStore>, payments: &mut Payments) -> Result<Option<ReportRun>> {
    let found: Vec<ObjectMeta> = files.list(None).try_collect().await?;
    let name = |file: &ObjectMeta| file.location.filename().unwrap_or_default().to_owned();
    let mut reports: Vec<(u64, ObjectMeta)> =
        found.into_iter().filter_map(|file| Some((PublishedReport::number_of(&name(&file))?, file))).collect();
    reports.sort_by(|(one, a), (other, b)| (one, &a.location).cmp(&(other, &b.location)));
    let mut last = None;
    for (_, file) in reports {
        let report = files.get(&file.location).await?.bytes().await?;
        let summary = Path::from(PublishedReport::summary_of(file.location.as_ref()));
        let summary = files.get(&summary).await.with_context(|| format!("{summary} is not beside its report"))?;
        let published = format!("{FOLDER}/{}", name(&file));
        let read = PublishedReport::decode(&published, &report, &summary.bytes().await?)
            .map_err(|why| anyhow::anyhow!("the report {} {why}", file.location))?;
        for row in read.rows {
            payments.dates.insert(row.due_date);
            payments.entry(&row.payment).reported = Some(row.unreported.settled_at);
        }
        last = Some(read.run);
    }
    Ok(last)
}
