//! The reasons why a run of `seal` fails.

use payments_sealed::{FolderError, SealedError};
use payments_store::StoreError;

/// The reason why a run failed. Committed parts stay, and the next run continues.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SealError {
    /// DynamoDB rejected a call.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder of parts cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A part cannot be written.
    #[error("a part cannot be written")]
    Encoding(#[source] SealedError),
}
