//! The upload of a file in parts, with its size and checksum.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use payments_files::hexadecimal;
use payments_store::ReportFile;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;

use crate::error::ReportError;

/// The bytes of one part of an upload: S3's minimum. A smaller file takes one request. The largest
/// report, 100,000 rows of 534 bytes, takes 11 of the 10,000 parts of an upload.
pub(crate) const PART: usize = 5 * 1024 * 1024;

/// The parts in flight. With one, an upload never takes more than 5 MB of memory; the largest file has 11 parts.
const PARTS_AT_ONCE: usize = 1;

/// An upload.
#[derive(Debug)]
pub(crate) struct Upload {
    path: String,
    parts: BufWriter,
    /// Whether it was finished or abandoned.
    closed: bool,
    sha256: Sha256,
    bytes: u64,
}

impl Upload {
    /// Starts an upload. Nothing is stored before the first part is full.
    pub(crate) fn begin(files: &Arc<dyn ObjectStore>, path: String) -> Result<Self, ReportError> {
        let parts = BufWriter::with_capacity(Arc::clone(files), parse(&path)?, PART);
        let parts = parts.with_max_concurrency(PARTS_AT_ONCE);
        Ok(Self { path, parts, closed: false, sha256: Sha256::new(), bytes: 0 })
    }

    /// Writes the next bytes.
    pub(crate) async fn write(&mut self, bytes: Vec<u8>) -> Result<(), ReportError> {
        self.sha256.update(&bytes);
        self.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        Ok(self.parts.put(bytes.into()).await?)
    }

    /// Stores the rest. Returns the file, which is to be published at `published`.
    pub(crate) async fn finish(&mut self, published: String) -> Result<ReportFile, ReportError> {
        // From here on the upload aborts by itself if it fails.
        self.closed = true;
        self.parts.shutdown().await?;
        let sha256 = hexadecimal(self.sha256.finalize_reset().as_slice());
        Ok(ReportFile { attempt: self.path.clone(), published, bytes: self.bytes, sha256 })
    }

    /// Aborts the upload, so S3 deletes its parts, if possible.
    pub(crate) async fn abandon(&mut self) {
        if self.closed {
            return;
        }
        self.closed = true;
        if let Err(error) = self.parts.abort().await {
            tracing::warn!(%error, "an upload could not be aborted; the bucket's lifecycle rule deletes its parts");
        }
    }
}

/// Parses a path from the job's item.
pub(crate) fn parse(path: &str) -> Result<Path, ReportError> {
    let parsed = Path::parse(path);
    parsed.map_err(|error| ReportError::Altered { path: path.to_owned(), why: format!("is not a valid path: {error}") })
}
