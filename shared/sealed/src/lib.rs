//! Sealed parts: Parquet files with finished payments of one due date, as the API shows them.
//!
//! A part is written once and never changed. Its bytes are made and read here, without I/O: the caller puts them, and
//! fetches the ranges that a read names. `docs/sealed.md` describes the files to people who ask in SQL.

mod column;
mod error;
mod part;
mod ranges;
mod row;
mod write;

pub use column::{COLUMNS, Column, Kind};
pub use error::SealedError;
pub use part::{Part, PartName, TAIL_BYTES, Tail, read_all};
pub use row::SealedRow;
pub use write::{MAX_PART_BYTES, MAX_PART_ROWS, ROW_GROUP_ROWS, encode};

#[cfg(test)]
mod tests;
