//! The publication of a committed run's files, which are never written again.

use object_store::{Error, PutMode, PutPayload};
use payments_boot::Deadline;
use payments_store::{ReportFile, ReportRun};

use crate::error::ReportError;
use crate::function::Report;
use crate::stored::{Found, Stored};
use crate::upload::parse;

/// Whether a file is published.
enum Published {
    /// The file is published, as this stored file.
    As(Stored),
    /// The file is not published. This file of the attempt can be.
    NotYet(Stored),
}

impl Report {
    /// Publishes a run's summary, then its settlements, so no reader finds settlements without a summary. Publishes
    /// neither unless both are as committed. Returns the file of settlements, or `None` if the deadline comes.
    pub(crate) async fn publish(&self, run: &ReportRun, deadline: &Deadline) -> Result<Option<Stored>, ReportError> {
        let Some(summary) = self.published(&run.summary, deadline).await? else { return Ok(None) };
        let Some(csv) = self.published(&run.csv, deadline).await? else { return Ok(None) };
        if let Published::NotYet(attempt) = summary
            && self.copy(attempt, &run.summary, deadline).await?.is_none()
        {
            return Ok(None);
        }
        match csv {
            Published::As(csv) => Ok(Some(csv)),
            Published::NotYet(attempt) => self.copy(attempt, &run.csv, deadline).await,
        }
    }

    /// Looks for the published file. If it is missing, the attempt's must be there to be copied. Returns `None`
    /// if the deadline comes.
    async fn published(&self, file: &ReportFile, deadline: &Deadline) -> Result<Option<Published>, ReportError> {
        match Stored::check(&self.files, &file.published, file, deadline).await? {
            Found::Intact(stored) => return Ok(Some(Published::As(stored))),
            Found::Altered(why) => return Err(altered(&file.published, &why)),
            Found::OutOfTime => return Ok(None),
            Found::Missing => {}
        }
        match Stored::check(&self.attempts, &file.attempt, file, deadline).await? {
            Found::Intact(attempt) => Ok(Some(Published::NotYet(attempt))),
            Found::Altered(why) => Err(altered(&file.attempt, &why)),
            Found::Missing => Err(altered(&file.attempt, "is missing and was not published")),
            Found::OutOfTime => Ok(None),
        }
    }

    /// Puts the attempt's bytes into the storage of published reports, if that has no such file. The bytes are in
    /// memory meanwhile: at most 40 MB, the size of the longest rows before compression. It is one conditional put, not
    /// an upload in parts, because S3 has no conditional copy from one bucket to another.
    async fn copy(
        &self,
        mut attempt: Stored,
        file: &ReportFile,
        deadline: &Deadline,
    ) -> Result<Option<Stored>, ReportError> {
        let mut pieces = Vec::new();
        while let Some(piece) = attempt.next().await? {
            pieces.push(piece);
            if deadline.has_come() {
                return Ok(None);
            }
        }
        if deadline.has_come() {
            return Ok(None);
        }
        let bytes: PutPayload = pieces.into_iter().collect();
        let conflict = match self.files.put_opts(&parse(&file.published)?, bytes, PutMode::Create.into()).await {
            Ok(_) => None,
            // Published by another run, or by an earlier try of this call whose answer was lost.
            Err(error @ Error::AlreadyExists { .. }) => Some(error),
            Err(error) => return Err(error.into()),
        };
        match (Stored::check(&self.files, &file.published, file, deadline).await?, conflict) {
            (Found::Intact(stored), _) => Ok(Some(stored)),
            (Found::OutOfTime, _) => Ok(None),
            (Found::Altered(why), _) => Err(altered(&file.published, &why)),
            // S3 also returns a conflict while another run puts the file.
            (Found::Missing, Some(conflict)) => Err(conflict.into()),
            (Found::Missing, None) => Err(altered(&file.published, "is missing although it was just published")),
        }
    }
}

fn altered(path: &str, why: &str) -> ReportError {
    ReportError::Altered { path: path.to_owned(), why: why.to_owned() }
}
