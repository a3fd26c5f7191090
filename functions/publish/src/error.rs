//! The reasons why an invocation of `publish` fails.

use payments_boot::WebhookMasterError;
use payments_files::ObjectError;
use payments_store::{LogHead, LogPosition, StoreError};

/// The reason why an invocation failed. The invocation's writes stay, and the next invocation continues.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// DynamoDB rejected a call, or the log cannot be read any further.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The storage rejected a call or did not answer it.
    #[error("the journal's storage rejected a call or did not answer it")]
    Files(#[from] object_store::Error),
    /// A file of the journal was changed.
    #[error("the journal's file {0} was changed; see docs/alarms.md, JournalBehind")]
    Altered(String, #[source] ObjectError),
    /// The journal has a file of this name whose events differ from the log's.
    #[error(
        "the journal's file {0} has other events than the log: the log was restored without a new epoch; \
         see docs/restore.md, A new epoch of the log"
    )]
    Differs(String),
    /// A file cannot be compressed.
    #[error("a file of the journal cannot be written")]
    Writing(#[from] std::io::Error),
    /// The log has fewer events than one of its readers got, in an epoch that has not ended.
    #[error("the log ends at {end}, before the place {at} of {reader}; see docs/restore.md, A new epoch of the log")]
    LogShorter {
        /// The end of the log.
        end: String,
        /// The reader.
        reader: String,
        /// The reader's place.
        at: String,
    },
    /// The secret that signs webhooks is not known.
    #[error(transparent)]
    Master(#[from] WebhookMasterError),
}

impl PublishError {
    /// The error of a reader whose place is beyond the log's end.
    pub(crate) fn shorter(head: &LogHead, reader: &str, at: LogPosition) -> Self {
        Self::LogShorter { end: head.end().to_string(), reader: reader.to_owned(), at: at.to_string() }
    }
}
