//! The publication of a committed run's files, which are never written again.

use object_store::{Error, ObjectStoreExt as _};
use payments_store::{ReportFile, ReportRun};

use crate::stored::{Found, Stored};
use crate::upload::parse;
use crate::{Report, ReportError};

impl Report {
    /// Publishes a run's summary, then its settlements, so no reader finds settlements without a summary.
    /// Publishes neither unless both are as committed. Returns the file of settlements.
    pub(crate) async fn publish(&self, run: &ReportRun) -> Result<Stored, ReportError> {
        let summary = self.published(&run.summary).await?;
        let csv = self.published(&run.csv).await?;
        if summary.is_none() {
            self.copy(&run.summary).await?;
        }
        match csv {
            Some(csv) => Ok(csv),
            None => self.copy(&run.csv).await,
        }
    }

    /// Returns the published file, or `None` if it is not published and the attempt's can be copied.
    async fn published(&self, file: &ReportFile) -> Result<Option<Stored>, ReportError> {
        match Stored::check(&self.files, &file.published, file).await? {
            Found::Intact(stored) => return Ok(Some(stored)),
            Found::Altered(why) => return Err(altered(&file.published, &why)),
            Found::Missing => {}
        }
        match Stored::check(&self.files, &file.attempt, file).await? {
            Found::Intact(_) => Ok(None),
            Found::Altered(why) => Err(altered(&file.attempt, &why)),
            Found::Missing => Err(altered(&file.attempt, "is missing and was not published")),
        }
    }

    async fn copy(&self, file: &ReportFile) -> Result<Stored, ReportError> {
        let conflict = match self.files.copy_if_not_exists(&parse(&file.attempt)?, &parse(&file.published)?).await {
            Ok(()) => None,
            // Published by another run, or by an earlier try of this call whose answer was lost.
            Err(error @ Error::AlreadyExists { .. }) => Some(error),
            Err(error) => return Err(error.into()),
        };
        match (Stored::check(&self.files, &file.published, file).await?, conflict) {
            (Found::Intact(stored), _) => Ok(stored),
            (Found::Altered(why), _) => Err(altered(&file.published, &why)),
            // S3 also answers a conflict while another run's copy is being completed.
            (Found::Missing, Some(conflict)) => Err(conflict.into()),
            (Found::Missing, None) => Err(altered(&file.published, "is missing although it was just published")),
        }
    }
}

fn altered(path: &str, why: &str) -> ReportError {
    ReportError::Altered { path: path.to_owned(), why: why.to_owned() }
}
