//! Bytes of a file that were fetched, as Parquet reads them.

use std::ops::Range;

use bytes::{Buf as _, Bytes, buf::Reader};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// Some ranges of a file.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// The length of the file.
    pub(crate) len: u64,
    /// The ranges with their bytes.
    pub(crate) ranges: Vec<(Range<u64>, Bytes)>,
}

impl Fetched {
    /// The bytes from a place on, as far as they were fetched.
    fn from(&self, start: u64) -> Result<Bytes> {
        let inside = |(range, bytes): &&(Range<u64>, Bytes)| {
            range.contains(&start) && u64::try_from(bytes.len()).is_ok_and(|len| len == range.end - range.start)
        };
        let missing = || ParquetError::EOF(format!("the bytes from {start} on were not fetched"));
        let (range, bytes) = self.ranges.iter().find(inside).ok_or_else(missing)?;
        Ok(bytes.slice(usize::try_from(start - range.start).map_err(|_| missing())?..))
    }
}

impl Length for Fetched {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for Fetched {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.from(start)?;
        let missing = || ParquetError::EOF(format!("{length} bytes from {start} on were not fetched"));
        if bytes.len() < length { Err(missing()) } else { Ok(bytes.slice(..length)) }
    }
}
