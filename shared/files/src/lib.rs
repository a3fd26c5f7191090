//! The files that are kept, reports, the journal and those of undos: their content, and their place, an S3 bucket or
//! a local folder.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{Error, ObjectMeta, ObjectStore};
use payments_boot::{ConfigError, Lookup};

mod journal;
mod kind;
mod report;
#[cfg(feature = "aws")]
mod s3;
#[cfg(feature = "aws")]
mod transport;
mod undo;

pub use journal::{JournalObject, MAX_OBJECT_BYTES, ObjectError};
pub use kind::FileKind;
pub use report::published::{PublishedReport, hexadecimal};
pub use report::rows::{COLUMNS, ReportedRow, RowReader, SettledHead, csv_of};
pub use undo::{
    PlanReader, PlanRow, PlanWriter, UndoEnd, UndoFileError, claimed_csv, claimed_path, decode_part, encode_part,
    ids_path, part_path, plan_path,
};

/// The most time that one call takes: two retries, and a last try of 10 s.
pub const CALL: TimeDelta = TimeDelta::seconds(20);

/// The longest that one try of a call takes, with the response's body. The largest body is a sealed part of some 64 MB, which a Lambda function
/// sends within a few seconds.
const ATTEMPT: Duration = Duration::from_secs(10);

/// The same of a read for which a person waits: of 128 KB, or of the pages of a row.
const ATTEMPT_FOR_PEOPLE: Duration = Duration::from_millis(1_500);

/// A storage of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// `s3://bucket` or `s3://bucket/prefix`.
    S3 {
        /// The bucket's name.
        bucket: String,
        /// The prefix of all keys, which may be empty.
        prefix: Path,
    },
    /// `file:///folder`.
    Folder(PathBuf),
}

/// Files that can be listed, and downloaded by anybody who has a link.
#[derive(Debug, Clone)]
pub struct LinkedFiles {
    files: Arc<dyn ObjectStore>,
    /// `None` for a folder, whose files have no links.
    #[cfg(feature = "aws")]
    bucket: Option<(Arc<object_store::aws::AmazonS3>, Path)>,
}

/// A text that does not name a storage of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected s3://BUCKET, s3://BUCKET/PREFIX or file:///FOLDER")]
pub struct StorageError;

impl FromStr for Storage {
    type Err = StorageError;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        if let Some(place) = url.strip_prefix("s3://") {
            let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
            let named = bucket.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-'));
            if bucket.is_empty() || !named {
                return Err(StorageError);
            }
            let prefix = Path::parse(prefix).map_err(|_| StorageError)?;
            return Ok(Self::S3 { bucket: bucket.to_owned(), prefix });
        }
        let folder = url.strip_prefix("file://").filter(|folder| folder.starts_with('/') && folder.len() > 1);
        folder.map(|folder| Self::Folder(folder.into())).ok_or(StorageError)
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::S3 { bucket, prefix } => write!(f, "s3://{bucket}/{prefix}"),
            Self::Folder(folder) => write!(f, "file://{}", folder.display()),
        }
    }
}

impl Storage {
    /// Opens the storage that this environment variable sets. Calls of S3 have the credentials of
    /// the function's role, which Lambda sets in the environment and which outlive the sandbox.
    ///
    /// # Errors
    /// [`ConfigError`], which names the variable.
    pub fn open(&self, variable: &'static str, lookup: &Lookup<'_>) -> Result<Arc<dyn ObjectStore>, ConfigError> {
        self.open_with(variable, lookup, ATTEMPT)
    }

    /// Opens the storage as [`open`](Self::open) does, for small reads for which a person waits: a try of 1.5 s leaves time for another one.
    ///
    /// # Errors
    /// [`ConfigError`], which names the variable.
    pub fn open_for_people(
        &self,
        variable: &'static str,
        lookup: &Lookup<'_>,
    ) -> Result<Arc<dyn ObjectStore>, ConfigError> {
        self.open_with(variable, lookup, ATTEMPT_FOR_PEOPLE)
    }

    #[cfg_attr(not(feature = "aws"), expect(unused_variables, reason = "only S3 is configured by the environment"))]
    fn open_with(
        &self,
        variable: &'static str,
        lookup: &Lookup<'_>,
        attempt: Duration,
    ) -> Result<Arc<dyn ObjectStore>, ConfigError> {
        let invalid = |error: &dyn fmt::Display| ConfigError::Invalid(variable, self.to_string(), error.to_string());
        match self {
            #[cfg(feature = "aws")]
            Self::S3 { bucket, prefix } => Ok(s3::below(prefix, s3::open(lookup, bucket, attempt, &invalid)?)),
            #[cfg(not(feature = "aws"))]
            Self::S3 { .. } => Err(invalid(&"this program is built for one machine, without S3; use file:///FOLDER")),
            Self::Folder(folder) => {
                std::fs::create_dir_all(folder).map_err(|error| invalid(&error))?;
                let files = LocalFileSystem::new_with_prefix(folder).map_err(|error| invalid(&error))?;
                Ok(Arc::new(files.with_fsync(true)))
            }
        }
    }
    /// Opens the storage as [`open`](Self::open) does, with links to its files.
    ///
    /// # Errors
    /// [`ConfigError`], which names the variable.
    pub fn open_with_links(&self, variable: &'static str, lookup: &Lookup<'_>) -> Result<LinkedFiles, ConfigError> {
        match self {
            #[cfg(feature = "aws")]
            Self::S3 { bucket, prefix } => {
                let invalid =
                    |error: &dyn fmt::Display| ConfigError::Invalid(variable, self.to_string(), error.to_string());
                let bucket = s3::open(lookup, bucket, ATTEMPT, &invalid)?;
                Ok(LinkedFiles::for_bucket(bucket, prefix.clone()))
            }
            _ => self.open(variable, lookup).map(LinkedFiles::without_links),
        }
    }
}

impl LinkedFiles {
    /// Files without links.
    pub fn without_links(files: Arc<dyn ObjectStore>) -> Self {
        Self {
            files,
            #[cfg(feature = "aws")]
            bucket: None,
        }
    }

    #[cfg(feature = "aws")]
    fn for_bucket(bucket: Arc<object_store::aws::AmazonS3>, prefix: Path) -> Self {
        Self { files: s3::below(&prefix, Arc::clone(&bucket)), bucket: Some((bucket, prefix)) }
    }

    /// Whether a list is in the order of the paths. S3's is (*ListObjectsV2*, general purpose buckets), a folder's is not.
    fn is_in_order(&self) -> bool {
        #[cfg(feature = "aws")]
        return self.bucket.is_some();
        #[cfg(not(feature = "aws"))]
        false
    }

    /// The files.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.files
    }

    /// The files below a folder whose paths follow `after`, in the order of their paths, at most
    /// `most`: a call for each thousand.
    ///
    /// # Errors
    /// The storage does not answer.
    pub async fn list(&self, folder: &str, after: &str, most: usize) -> Result<Vec<ObjectMeta>, Error> {
        let found = self.files.list_with_offset(Some(&Path::from(folder)), &Path::from(after));
        // A folder lists all files at once.
        let most_listed = if self.is_in_order() { most } else { usize::MAX };
        let mut files: Vec<_> = found.take(most_listed).try_collect().await?;
        files.sort_unstable_by(|one, other| one.location.cmp(&other.location));
        files.truncate(most);
        Ok(files)
    }

    /// A link with which anybody can download a file for `lasts`; `None` for a folder. The file need not exist.
    ///
    /// # Errors
    /// The link cannot be signed.
    #[cfg_attr(not(feature = "aws"), expect(unused_variables, reason = "only a bucket of S3 has links"))]
    pub async fn link(&self, path: &str, lasts: Duration) -> Result<Option<String>, Error> {
        #[cfg(feature = "aws")]
        if let Some((bucket, prefix)) = &self.bucket {
            return s3::link(bucket, prefix, path, lasts).await.map(Some);
        }
        Ok(None)
    }
}
