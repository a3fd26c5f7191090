//! The storage of reports: an S3 bucket or a local folder.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, S3CopyIfNotExists};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use payments_boot::{ConfigError, Lookup};

use crate::transport::SdkTransport;

/// The environment variable that sets it.
const VARIABLE: &str = "REPORTS_URL";

/// The most retries of one call to S3.
const MAX_RETRIES: usize = 2;

/// The time after which a call to S3 is not retried. With the last try's own timeout of 10 s, a call takes
/// at most 20 s.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest wait between two tries. Waits start at 100 ms and double.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// A storage of reports.
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

/// Why a text is not a storage of reports.
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
    /// Opens the storage. S3 is called with the credentials of the function's role, which Lambda sets in the
    /// environment and which outlive the sandbox.
    ///
    /// # Errors
    /// [`ConfigError`], which names the variable.
    pub fn open(&self, lookup: &Lookup<'_>) -> Result<Arc<dyn ObjectStore>, ConfigError> {
        let invalid = |error: &dyn fmt::Display| ConfigError::Invalid(VARIABLE, self.to_string(), error.to_string());
        match self {
            Self::S3 { bucket, prefix } => {
                let mut builder = AmazonS3Builder::new()
                    .with_bucket_name(bucket)
                    .with_region(lookup.required::<String>("AWS_REGION", "the region, which Lambda sets")?)
                    .with_access_key_id(lookup.required::<String>("AWS_ACCESS_KEY_ID", ROLE)?)
                    .with_secret_access_key(lookup.required::<String>("AWS_SECRET_ACCESS_KEY", ROLE)?);
                // A role's credentials have a token; an emulator's need none.
                if let Some(token) = lookup.text("AWS_SESSION_TOKEN") {
                    builder = builder.with_token(token);
                }
                // All AWS clients read these variables for another endpoint.
                if let Some(url) = lookup.text("AWS_ENDPOINT_URL_S3").or_else(|| lookup.text("AWS_ENDPOINT_URL")) {
                    builder = builder.with_allow_http(url.starts_with("http:")).with_endpoint(url);
                }
                open_s3(builder, prefix).map_err(|error| invalid(&error))
            }
            Self::Folder(folder) => {
                std::fs::create_dir_all(folder).map_err(|error| invalid(&error))?;
                let files = LocalFileSystem::new_with_prefix(folder).map_err(|error| invalid(&error))?;
                Ok(Arc::new(files.with_fsync(true)))
            }
        }
    }
}

/// The value of the variables with credentials.
const ROLE: &str = "the credentials of the function's role, which Lambda sets";

/// Opens a bucket with the SDK's HTTP client, limited retries, and copies that never overwrite.
fn open_s3(builder: AmazonS3Builder, prefix: &Path) -> Result<Arc<dyn ObjectStore>, object_store::Error> {
    let backoff = BackoffConfig { max_backoff: LONGEST_WAIT, ..BackoffConfig::default() };
    let retry = RetryConfig { backoff, max_retries: MAX_RETRIES, retry_timeout: RETRY_TIMEOUT };
    let builder = builder.with_http_connector(SdkTransport).with_retry(retry);
    // A copy is a multipart upload of one part, completed with "If-None-Match: *".
    let files = builder.with_copy_if_not_exists(S3CopyIfNotExists::Multipart).build()?;
    Ok(if prefix.as_ref().is_empty() { Arc::new(files) } else { Arc::new(PrefixStore::new(files, prefix.clone())) })
}

#[cfg(test)]
mod tests;
