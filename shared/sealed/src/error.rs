//! The reasons why a part cannot be written or read.

use std::sync::Arc;

use object_store::Error as FileError;
use object_store::path::Path;
use parquet::errors::ParquetError;
use payments_model::{Outage, OutageKind};

/// The reason why the folder of parts cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The storage rejected a call or did not answer it.
    #[error("the storage of sealed parts rejected a call or did not answer it")]
    Files(#[from] FileError),
    /// The storage has not answered in time.
    #[error("the storage of sealed parts has not answered in time")]
    Late,
    /// A part cannot be read, or was changed.
    #[error(transparent)]
    Damaged(#[from] DamagedPart),
    /// A part that was just written has other bytes.
    #[error("the part {0} was read back, and has other bytes than were written; see docs/alarms.md, SealErrors")]
    Differs(String),
}

impl Outage for FolderError {
    fn kind(&self) -> OutageKind {
        match self {
            Self::Files(FileError::PermissionDenied { .. } | FileError::Unauthenticated { .. }) => OutageKind::Broken,
            Self::Files(_) | Self::Late => OutageKind::Unavailable,
            Self::Damaged(_) | Self::Differs(_) => OutageKind::Broken,
        }
    }
}

/// A part, or a row of it, cannot be read, or was changed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the part {path} cannot be used; see docs/alarms.md, SealErrors")]
pub struct DamagedPart {
    path: String,
    source: Arc<SealedError>,
}

impl DamagedPart {
    pub(crate) fn new(path: &Path, error: SealedError) -> Self {
        Self { path: path.to_string(), source: Arc::new(error) }
    }
}

impl Outage for DamagedPart {
    fn kind(&self) -> OutageKind {
        OutageKind::Broken
    }
}

/// The reason why a part cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum SealedError {
    /// A payment's JSON is not the API's.
    #[error("the payment's field {field} cannot be sealed: {why}")]
    Field {
        /// The field's name in the API.
        field: String,
        /// The fault.
        why: &'static str,
    },
    /// The storage has no such file, or refuses it: it may be in an archive from which it has to be restored first.
    #[error("the storage refuses the file")]
    Refused(#[source] FileError),
    /// The bytes are not those that were written.
    #[error("the part's bytes are not those that were written: {0}")]
    Changed(&'static str),
    /// The file is not a part of this schema.
    #[error("the file is not a sealed part: {0}")]
    NotAPart(&'static str),
    /// Parquet rejects the file, or what was to be written.
    #[error("the file cannot be written or read as Parquet")]
    Parquet(#[from] ParquetError),
    /// The part has fewer rows.
    #[error("the part has {rows} rows, and row {row} was asked for")]
    NoRow {
        /// The row.
        row: usize,
        /// The number of rows.
        rows: usize,
    },
}
