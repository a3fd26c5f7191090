//! The reasons why a part cannot be written or read.

use parquet::errors::ParquetError;

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
