//! The reasons why a run of `seal` fails.

use payments_sealed::SealedError;
use payments_store::StoreError;

/// The reason why a run failed. Committed parts stay, and the next run continues.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SealError {
    /// DynamoDB rejected a call.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The storage rejected a call or did not answer it.
    #[error("the storage of sealed parts rejected a call or did not answer it")]
    Files(#[from] object_store::Error),
    /// A part cannot be read, or was changed.
    #[error("the part {0} cannot be used; compare it with its copies, see docs/alarms.md, SealErrors")]
    Damaged(String, #[source] SealedError),
    /// A part that was just written has other bytes.
    #[error("the part {0} was read back, and has other bytes than were written; see docs/alarms.md, SealErrors")]
    Differs(String),
    /// A part cannot be written.
    #[error("a part cannot be written")]
    Encoding(#[source] SealedError),
}
