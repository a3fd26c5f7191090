//! Why a report stops.

use payments_store::StoreError;

/// What ends an invocation before its time.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// DynamoDB refuses, or an item cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The place for reports refuses or does not answer; the next invocation goes on from here.
    #[error("the place for reports refused a call or did not answer it")]
    Files(#[from] object_store::Error),
    /// A file of the committed run is not what was committed. Nothing is gathered, published or
    /// drained until somebody has looked.
    #[error("the report's file {path} {why}")]
    Altered {
        /// Which file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// A settlement could not be written as CSV, or not be compressed or uploaded.
    #[error("a report cannot be written")]
    Writing(#[from] std::io::Error),
    /// A sum has more than 38 digits, where all amounts there can be have 31.
    #[error("the sum of an account's settlements is out of range")]
    SumOutOfRange,
}
