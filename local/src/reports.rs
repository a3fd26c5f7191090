//! The folder of reports, journal and sealed dates, which may be another bank's.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

/// Rejects a folder with reports, for a bank that begins empty: it would find another bank's reports under its own names.
pub(crate) fn without_reports(folder: &Path) -> Result<()> {
    if ["reports", "journal", "sealed"].iter().any(|name| folder.join(name).exists()) {
        bail!(
            "{} contains the reports, the journal or the sealed dates of another bank: give --reports a new folder",
            folder.display()
        );
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
