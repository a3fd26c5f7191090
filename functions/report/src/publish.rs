//! A committed run's files, at the names that readers use. A published file is never written again.

use object_store::{Error, ObjectStoreExt as _};
use payments_store::{ReportFile, ReportRun};

use crate::attempt::parse;
use crate::stored::{Found, Stored};
use crate::{Report, ReportError};

impl Report {
    /// Publishes a run's summary, then its settlements, so that no reader finds these without that. Both
    /// are checked where they lie; the settlements are handed on to be read.
    pub(crate) async fn publish(&self, run: &ReportRun) -> Result<Stored, ReportError> {
        self.publish_file(&run.summary).await?;
        self.publish_file(&run.csv).await
    }

    async fn publish_file(&self, file: &ReportFile) -> Result<Stored, ReportError> {
        let altered = |path: &str, why: &str| ReportError::Altered { path: path.to_owned(), why: why.to_owned() };
        match Stored::check(&self.files, &file.published, file).await? {
            Found::Intact(stored) => return Ok(stored),
            Found::Altered(why) => return Err(altered(&file.published, &why)),
            Found::Missing => {}
        }
        match Stored::check(&self.files, &file.attempt, file).await? {
            Found::Intact(_) => {}
            Found::Altered(why) => return Err(altered(&file.attempt, &why)),
            Found::Missing => return Err(altered(&file.attempt, "is missing, and was not published")),
        }
        match self.files.copy_if_not_exists(&parse(&file.attempt)?, &parse(&file.published)?).await {
            // Another run published it, or an earlier try of this call whose answer was lost.
            Ok(()) | Err(Error::AlreadyExists { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        match Stored::check(&self.files, &file.published, file).await? {
            Found::Intact(stored) => Ok(stored),
            Found::Altered(why) => Err(altered(&file.published, &why)),
            Found::Missing => Err(altered(&file.published, "is missing, though it was just published")),
        }
    }
}
