//! A stored file, read piece by piece. Each piece is one call, and all are of the same version.

use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error, GetOptions, GetRange, ObjectStore};
use payments_boot::Deadline;
use payments_files::hexadecimal;
use payments_store::ReportFile;
use sha2::{Digest as _, Sha256};

use crate::error::ReportError;
use crate::upload::parse;

/// The bytes of one piece.
const PIECE: u64 = 1024 * 1024;

/// The state of a file in storage.
#[derive(Debug)]
pub(crate) enum Found {
    /// The file is as committed.
    Intact(Stored),
    /// The file does not exist.
    Missing,
    /// The file differs, in the way described.
    Altered(String),
    /// The deadline came before the file was read.
    OutOfTime,
}

/// A stored file and the position up to which it was read.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    files: Arc<dyn ObjectStore>,
    path: Path,
    version: Option<String>,
    size: u64,
    at: u64,
}

impl Stored {
    /// Reads `file` at `path` and compares its size and checksum with the committed ones.
    pub(crate) async fn check(
        files: &Arc<dyn ObjectStore>,
        path: &str,
        file: &ReportFile,
        deadline: &Deadline,
    ) -> Result<Found, ReportError> {
        let path = parse(path)?;
        if deadline.has_come() {
            return Ok(Found::OutOfTime);
        }
        let head = GetOptions { head: true, ..GetOptions::default() };
        let meta = match files.get_opts(&path, head).await {
            Ok(found) => found.meta,
            Err(Error::NotFound { .. }) => return Ok(Found::Missing),
            Err(error) => return Err(error.into()),
        };
        if meta.size != file.bytes {
            return Ok(Found::Altered(format!("has {} bytes, but {} were committed", meta.size, file.bytes)));
        }
        let stored = Self { files: Arc::clone(files), path, version: meta.e_tag, size: meta.size, at: 0 };
        let (mut reading, mut sha256) = (stored.clone(), Sha256::new());
        while let Some(piece) = reading.next().await? {
            sha256.update(&piece);
            if deadline.has_come() && reading.at < reading.size {
                return Ok(Found::OutOfTime);
            }
        }
        let sha256 = hexadecimal(sha256.finalize().as_slice());
        if sha256 == file.sha256 {
            Ok(Found::Intact(stored))
        } else {
            Ok(Found::Altered(format!("has the SHA-256 {sha256}, but {} was committed", file.sha256)))
        }
    }

    /// Reads the next piece, or returns `None` after the last. A file that was replaced since
    /// [`check`](Self::check) is an error.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ReportError> {
        if self.at >= self.size {
            return Ok(None);
        }
        let end = self.size.min(self.at + PIECE);
        let options = GetOptions {
            range: Some(GetRange::Bounded(self.at..end)),
            if_match: self.version.clone(),
            ..GetOptions::default()
        };
        let got = match self.files.get_opts(&self.path, options).await {
            Ok(got) => got.bytes().await?,
            Err(Error::NotFound { .. } | Error::Precondition { .. }) => {
                return Err(self.altered("was replaced while it was read"));
            }
            Err(error) => return Err(error.into()),
        };
        self.at = end;
        Ok(Some(got))
    }

    /// Returns the error for this file.
    pub(crate) fn altered(&self, why: &str) -> ReportError {
        ReportError::Altered { path: self.path.to_string(), why: why.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use object_store::ObjectStoreExt as _;
    use object_store::memory::InMemory;
    use payments_boot::Clock;

    use super::*;

    /// A deadline that never comes, in milliseconds since 1970.
    const FAR_AWAY: u64 = 4_000_000_000_000;

    #[tokio::test]
    async fn a_file_that_is_replaced_after_its_check_is_an_error() {
        let files: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let path = Path::from("reports/a");
        files.put(&path, "checked".into()).await.unwrap();
        let file = ReportFile {
            attempt: "a".to_owned(),
            published: path.to_string(),
            bytes: 7,
            sha256: hexadecimal(Sha256::digest(b"checked").as_slice()),
        };
        let deadline = Deadline::before(FAR_AWAY, &Clock::system());
        let Found::Intact(mut stored) = Stored::check(&files, &file.published, &file, &deadline).await.unwrap() else {
            panic!("the file is as committed")
        };
        // The new content has the same length, so only its version differs.
        files.put(&path, "changed".into()).await.unwrap();
        let read = stored.next().await;
        assert!(matches!(read, Err(ReportError::Altered { .. })), "{read:?}");
    }
}
