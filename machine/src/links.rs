//! Links to the files of reports: S3's presigned URLs, on one machine.

use std::sync::Arc;

use anyhow::Result;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use payments_boot::Clock;
use payments_files::LinkedFiles;

use crate::codes::Codes;

/// Where the files of reports are served, each under a code. It is not a path of the bank's API.
pub const REPORTS_PATH: &str = "/reports/";

/// The reports, and the codes under which their files are served for a minute.
#[derive(Debug, Clone)]
pub struct ReportLinks {
    /// The reports.
    pub reports: LinkedFiles,
    codes: Arc<Codes<Path>>,
}

impl ReportLinks {
    /// Serves the files of a storage.
    pub fn over(reports: Arc<dyn ObjectStore>) -> Self {
        Self { reports: LinkedFiles::without_links(reports), codes: Arc::default() }
    }

    /// Opens a link to a file.
    pub fn open(&self, path: &str, clock: &Clock) -> Result<String> {
        let code = self.codes.open(Path::from(path), clock.instant())?;
        Ok(format!("{REPORTS_PATH}{code}"))
    }

    /// Reads the file that a code stands for, with its name. None if there is no such code, or no longer.
    pub async fn file(&self, code: &str, clock: &Clock) -> Option<(String, Vec<u8>)> {
        let path = self.codes.look(code, clock.instant())?;
        let bytes = self.reports.store().get(&path).await.ok()?.bytes().await.ok()?;
        Some((path.filename()?.to_owned(), bytes.into()))
    }
}
