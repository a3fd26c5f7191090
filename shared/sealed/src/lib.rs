//! Sealed parts: Parquet files with finished payments of one due date, as the API shows them.
//!
//! A part is written once and never changed. [`Folder`] puts, lists and reads parts; the rest works on bytes, without
//! I/O. `docs/sealed.md` describes the files to people who ask in SQL.

mod column;
mod data;
mod error;
mod folder;
mod part;
mod ranges;
mod row;
mod write;

pub use column::{COLUMNS, Column, Kind};
pub use data::{ROWS_AT_ONCE, ReadData, SealedRows};
pub use error::{DamagedPart, FolderError, SealedError};
pub use folder::{Folder, Put, damaged, missing, path};
pub use part::{Part, PartName, TAIL_BYTES, Tail, read_all};
pub use row::SealedRow;
pub use write::{MAX_PART_BYTES, MAX_PART_ROWS, ROW_GROUP_ROWS, encode};

#[cfg(test)]
mod tests;
