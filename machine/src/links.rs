//! The files of reports and of the journal on one machine: their folder, and links to them as S3's presigned URLs.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use payments_boot::{Clock, Lookup};
use payments_files::{LinkedFiles, Storage};

use crate::codes::Codes;

/// The path under which the files of reports are served, each under a code. It is not a path of the bank's API.
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

/// Opens a report store in a folder, which is created if it is missing.
pub(crate) fn reports_in(folder: &std::path::Path) -> Result<Arc<dyn ObjectStore>> {
    let explain = || format!("cannot keep reports in {}: give --reports a writable folder", folder.display());
    let folder = std::path::absolute(folder).with_context(explain)?;
    std::fs::create_dir_all(&folder).and_then(|()| tempfile::tempfile_in(&folder)).with_context(explain)?;
    Storage::Folder(folder.clone()).open("REPORTS_URL", &Lookup::environment()).with_context(explain)
}
