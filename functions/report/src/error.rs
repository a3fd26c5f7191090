//! The errors of a report.

use payments_store::StoreError;

/// A failed invocation.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// DynamoDB rejected a call, or an item cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The report storage rejected a call or did not answer. The next invocation continues.
    #[error("the report storage rejected a call or did not answer it")]
    Files(#[from] object_store::Error),
    /// A file of the committed run differs from what was committed. Nothing is gathered, published
    /// or drained until an operator repairs it.
    #[error("the report's file {path} {why}")]
    Altered {
        /// The file.
        path: String,
        /// The difference.
        why: String,
    },
    /// A settlement could not be written as CSV, compressed or uploaded.
    #[error("a report cannot be written")]
    Writing(#[from] std::io::Error),
    /// A sum has more than 38 digits. All possible amounts together have 31.
    #[error("the sum of an account's settlements is out of range")]
    SumOutOfRange,
}
