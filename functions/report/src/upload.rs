//! A file on its way to the place for reports: it goes out part by part, and nothing of it is kept but its
//! size and a checksum.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use payments_store::ReportFile;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;

use crate::ReportError;

/// The bytes of one part of an upload: S3's smallest. A smaller file is put at once; the largest report
/// of 100,000 rows of 534 bytes would be 11 of the 10,000 parts that an upload may have.
pub(crate) const PART: usize = 5 * 1024 * 1024;

/// The parts under way at once. The next one is filled when it is through, so that an upload is never more
/// than 5 MB of memory; the largest file has 11 parts.
const PARTS_AT_ONCE: usize = 1;

/// An upload.
#[derive(Debug)]
pub(crate) struct Upload {
    path: String,
    parts: BufWriter,
    /// Whether it was ended: then there is nothing left to let go.
    closed: bool,
    sha256: Sha256,
    bytes: u64,
}

impl Upload {
    /// Begins one. Nothing is stored before there is a part to store.
    pub(crate) fn begin(files: &Arc<dyn ObjectStore>, path: String) -> Result<Self, ReportError> {
        let parts = BufWriter::with_capacity(Arc::clone(files), parse(&path)?, PART);
        let parts = parts.with_max_concurrency(PARTS_AT_ONCE);
        Ok(Self { path, parts, closed: false, sha256: Sha256::new(), bytes: 0 })
    }

    /// Writes the next bytes.
    pub(crate) async fn write(&mut self, bytes: Vec<u8>) -> Result<(), ReportError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.sha256.update(&bytes);
        self.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        Ok(self.parts.put(bytes.into()).await?)
    }

    /// Stores what is left: the file, which will be published at `published`.
    pub(crate) async fn finish(&mut self, published: String) -> Result<ReportFile, ReportError> {
        // From here on the upload lets go by itself of what it cannot complete.
        self.closed = true;
        self.parts.shutdown().await?;
        let sha256 = hexadecimal(self.sha256.finalize_reset().as_slice());
        Ok(ReportFile { attempt: self.path.clone(), published, bytes: self.bytes, sha256 })
    }

    /// Gives up: what S3 keeps of an upload that was begun is let go, where that can be done.
    pub(crate) async fn abandon(&mut self) {
        if self.closed {
            return;
        }
        self.closed = true;
        if let Err(error) = self.parts.abort().await {
            tracing::warn!(%error, "an upload is left to the bucket's lifecycle");
        }
    }
}

/// A stored path, as it is written in the job's item.
pub(crate) fn parse(path: &str) -> Result<Path, ReportError> {
    let parsed = Path::parse(path);
    parsed.map_err(|error| ReportError::Altered { path: path.to_owned(), why: format!("has no name: {error}") })
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
