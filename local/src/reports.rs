//! The folder of the reports and of the journal on one machine.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use object_store::ObjectStore;
use payments_boot::Lookup;
use payments_files::Storage;

/// Rejects a folder with reports, for a bank that begins empty: it would find another bank's reports under its own names.
pub(crate) fn without_reports(folder: &Path) -> Result<()> {
    if ["reports", "journal"].iter().any(|name| folder.join(name).exists()) {
        bail!("{} contains the reports or the journal of another bank: give --reports a new folder", folder.display());
    }
    Ok(())
}

/// Rejects a folder with reports, for a bank whose database is missing or empty: it has probably lost it.
pub(crate) fn without_reports_of_lost(database: &Path, folder: &Path) -> Result<()> {
    without_reports(folder).with_context(|| {
        format!(
            "{} has no database, or an empty one, but its bank has reports or a journal: put a copy of the database there, give --data and \
             --reports new folders, or begin a new bank beside them with --new-bank",
            database.display()
        )
    })
}

/// Opens a report store in a folder, which is created if it is missing.
pub(crate) fn reports_in(folder: &Path) -> Result<Arc<dyn ObjectStore>> {
    let explain = || format!("cannot keep reports in {}: give --reports a writable folder", folder.display());
    let folder = std::path::absolute(folder).with_context(explain)?;
    std::fs::create_dir_all(&folder).and_then(|()| tempfile::tempfile_in(&folder)).with_context(explain)?;
    Storage::Folder(folder.clone()).open("REPORTS_URL", &Lookup::environment()).with_context(explain)
}
