//! The folder of the reports and of the journal on one machine.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use object_store::ObjectStore;
use payments_boot::Lookup;
use payments_files::Storage;

/// Opens a report store in a folder, which is created if it is missing.
pub(crate) fn reports_in(folder: &Path) -> Result<Arc<dyn ObjectStore>> {
    let explain = || format!("cannot keep reports in {}: give --reports a writable folder", folder.display());
    let folder = std::path::absolute(folder).with_context(explain)?;
    std::fs::create_dir_all(&folder).and_then(|()| tempfile::tempfile_in(&folder)).with_context(explain)?;
    Storage::Folder(folder.clone()).open("REPORTS_URL", &Lookup::environment()).with_context(explain)
}
