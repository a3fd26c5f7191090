//! Reads a part: its tail, which says where its pages are, and then the pages of a row, of a column, or all.

use std::fmt::Write as _;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use parquet::column::page::PageReader;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::serialized_reader::SerializedPageReader;
use payments_model::UtcSecond;
use sha2::{Digest as _, Sha256};

use crate::column::{CHECKSUM, COLUMNS, Column};
use crate::error::SealedError;
use crate::ranges::Fetched;
use crate::row::{Cell, SealedRow};

/// The bytes of a file's end that a read begins with. A part of 10,000 payments of 8 KB has a footer of 30 KB.
pub const TAIL_BYTES: u64 = 128 << 10;

/// The number of the schema.
const SCHEMA: &str = "1";

/// The names of the file's metadata.
const META: [&str; 7] = ["schema", "due_date", "part", "rows_before", "sealed_at", "kept_days", "sha256"];

/// A part's place among those of its due date, and the instant at which it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartName {
    /// The due date.
    pub due_date: String,
    /// The part's number, from 1 on.
    pub number: u32,
    /// The number of rows of the parts before.
    pub rows_before: u64,
    /// The instant at which it was written. It tells when the data of its payments may leave the table.
    pub sealed_at: UtcSecond,
    /// The days after which the storage deletes it; 0 keeps it for good.
    pub kept_days: u32,
}

impl PartName {
    /// The SHA-256 of a part: of its pages, and of its name.
    pub(crate) fn hash(&self, pages: &[u8]) -> String {
        let Self { due_date, number, rows_before, sealed_at, kept_days } = self;
        let name = format!("\n{due_date}\n{number}\n{rows_before}\n{sealed_at}\n{kept_days}");
        hexadecimal(&Sha256::new().chain_update(pages).chain_update(name).finalize())
    }
}

/// The end of a file.
#[derive(Debug)]
pub enum Tail {
    /// The part's.
    Part(Box<Part>),
    /// The tail is longer: fetch so many bytes.
    Longer(u64),
}

/// A part, as its tail describes it.
#[derive(Debug)]
pub struct Part {
    /// Its name.
    pub name: PartName,
    len: u64,
    hash: String,
    metadata: ParquetMetaData,
}

/// The file's metadata.
pub(crate) fn metadata(name: &PartName, hash: String) -> impl Iterator<Item = (&'static str, String)> {
    let values: [String; META.len()] = [
        SCHEMA.to_owned(),
        name.due_date.clone(),
        name.number.to_string(),
        name.rows_before.to_string(),
        name.sealed_at.to_string(),
        name.kept_days.to_string(),
        hash,
    ];
    META.into_iter().zip(values)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads all rows of a part, whose bytes must be those that were written.
///
/// # Errors
/// [`SealedError::Changed`] if the bytes changed, and the other errors if they are not a part's.
pub fn read_all(bytes: &Bytes) -> Result<(Part, Vec<SealedRow>), SealedError> {
    let len = bytes.len() as u64;
    let Tail::Part(part) = Part::from_tail(len, bytes)? else { return Err(SealedError::NotAPart("it is too short")) };
    // Everything before the page indexes.
    let end = guarded(|| Ok(part.chunks().map(|(_, _, range)| range.end).max().unwrap_or(0)))?;
    let pages = usize::try_from(end).ok().and_then(|end| bytes.get(..end)).unwrap_or_default();
    if part.name.hash(pages) != part.hash {
        return Err(SealedError::Changed("another SHA-256"));
    }
    let whole = [(0..len, bytes.clone())];
    let mut rows = Vec::with_capacity(part.rows());
    for group in 0..part.metadata.num_row_groups() {
        rows.append(&mut part.rows_of(group, 0..part.rows_in(group), &whole)?);
    }
    Ok((*part, rows))
}

impl Part {
    /// Reads the end of a file of `len` bytes.
    ///
    /// # Errors
    /// If the file is not a part.
    pub fn from_tail(len: u64, tail: &Bytes) -> Result<Tail, SealedError> {
        guarded(|| Self::parse(len, tail))
    }

    fn parse(len: u64, tail: &Bytes) -> Result<Tail, SealedError> {
        let mut reader = ParquetMetaDataReader::new()
            .with_column_index_policy(PageIndexPolicy::Skip)
            .with_offset_index_policy(PageIndexPolicy::Required);
        let metadata = match reader.try_parse_sized(tail, len).and_then(|()| reader.finish()) {
            Ok(metadata) => metadata,
            Err(ParquetError::NeedMoreData(bytes)) if (bytes as u64) <= len && tail.len() < bytes => {
                return Ok(Tail::Longer(bytes as u64));
            }
            Err(error) => return Err(error.into()),
        };
        let kept = metadata.file_metadata().key_value_metadata().map_or(&[][..], Vec::as_slice);
        let value = |key| kept.iter().find(|it| it.key == key)?.value.clone();
        let [schema, due_date, number, rows_before, sealed_at, kept_days, hash] = META.map(value);
        // A later schema has more columns, which are not read.
        if schema.and_then(|schema| schema.parse::<u32>().ok()).is_none() {
            return Err(SealedError::NotAPart("it has no schema's number"));
        }
        let name = || {
            let (number, rows_before) = (number?.parse().ok()?, rows_before?.parse().ok()?);
            let (sealed_at, kept_days) = (sealed_at?.parse().ok()?, kept_days?.parse().ok()?);
            Some(PartName { due_date: due_date?, number, rows_before, sealed_at, kept_days })
        };
        let name = name().ok_or(SealedError::NotAPart("it has no name"))?;
        let hash = hash.ok_or(SealedError::NotAPart("it has no SHA-256"))?;
        let part = Self { name, len, hash, metadata };
        // Otherwise rows would be missing without a trace.
        if usize::try_from(part.metadata.file_metadata().num_rows()).ok() != Some(part.rows()) {
            return Err(SealedError::Changed("another number of rows"));
        }
        Ok(Tail::Part(Box::new(part)))
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        (0..self.metadata.num_row_groups()).map(|group| self.rows_in(group)).sum()
    }

    /// The number of rows of this part and those before it.
    #[must_use]
    pub fn rows_up_to(&self) -> u64 {
        self.name.rows_before + self.rows() as u64
    }

    /// The row as this part has it: without the columns that came later than the part.
    #[must_use]
    pub fn as_written(&self, row: SealedRow) -> SealedRow {
        let schema = self.metadata.file_metadata().schema_descr();
        let has = |column: &Column| schema.columns().iter().any(|it| it.name() == column.name);
        let cells = COLUMNS.iter().zip(row.cells).map(|(column, cell)| cell.filter(|_| has(column))).collect();
        SealedRow { cells }
    }

    /// The ranges of the file that a row needs: of each column its page, and its dictionary.
    ///
    /// # Errors
    /// [`SealedError::NoRow`].
    pub fn ranges(&self, row: usize) -> Result<Vec<Range<u64>>, SealedError> {
        guarded(|| self.needed(row))
    }

    fn needed(&self, row: usize) -> Result<Vec<Range<u64>>, SealedError> {
        let (group, row) = self.place(row)?;
        let mut ranges = Vec::new();
        for (of, column, chunk) in self.chunks() {
            if of != group {
                continue;
            }
            let pages = self.pages(group, column)?;
            let first = pages.first().map_or(chunk.start, |(_, range)| range.start);
            ranges.extend((chunk.start < first).then_some(chunk.start..first));
            ranges.extend(pages.into_iter().rev().find(|(first, _)| *first <= row).map(|(_, range)| range));
        }
        Ok(ranges)
    }

    /// Reads a row from these ranges.
    ///
    /// # Errors
    /// [`SealedError::Changed`] if the row is not the one that was written, and the other errors if it cannot be read.
    pub fn row(&self, row: usize, fetched: &[(Range<u64>, Bytes)]) -> Result<SealedRow, SealedError> {
        let (group, row) = self.place(row)?;
        let rows = self.rows_of(group, row..row + 1, fetched)?;
        rows.into_iter().next().ok_or(SealedError::Changed("a row is missing"))
    }

    /// The ranges of the file with the values of a text column, such as `payment_id`.
    ///
    /// # Errors
    /// [`SealedError::Changed`].
    pub fn ranges_of(&self, name: &str) -> Result<Vec<Range<u64>>, SealedError> {
        let is_of = |group, column| self.chunk(group, column).column_path().string() == name;
        guarded(|| {
            Ok(self.chunks().filter(|(group, column, _)| is_of(*group, *column)).map(|(_, _, range)| range).collect())
        })
    }

    /// Reads the values of a required text column from these ranges.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn texts_of(&self, name: &str, fetched: &[(Range<u64>, Bytes)]) -> Result<Vec<String>, SealedError> {
        let column = COLUMNS.iter().find(|column| column.name == name && column.is_required);
        let column = column.ok_or(SealedError::NotAPart("it has no such column"))?;
        let mut texts = Vec::new();
        for group in 0..self.metadata.num_row_groups() {
            for cell in self.cells(group, column.name, 0..self.rows_in(group), fetched)? {
                let Some(Cell::Text(text)) = cell else { return Err(SealedError::Changed("a value is missing")) };
                texts.push(text);
            }
        }
        Ok(texts)
    }

    /// Reads rows of a row group, and compares each with its checksum.
    fn rows_of(
        &self,
        group: usize,
        rows: Range<usize>,
        fetched: &[(Range<u64>, Bytes)],
    ) -> Result<Vec<SealedRow>, SealedError> {
        let mut read: Vec<_> = rows.clone().map(|_| SealedRow { cells: Vec::with_capacity(COLUMNS.len()) }).collect();
        for column in COLUMNS {
            let cells = self.cells(group, column.name, rows.clone(), fetched)?;
            read.iter_mut().zip(cells).for_each(|(row, cell)| row.cells.push(cell));
        }
        let checksums = self.cells(group, CHECKSUM.name, rows, fetched)?;
        if read.iter().zip(checksums).all(|(row, checksum)| checksum == Some(Cell::Long(row.checksum()))) {
            Ok(read)
        } else {
            Err(SealedError::Changed("another checksum of a row"))
        }
    }

    /// Reads the values of a column for some rows of a row group. A column that the file lacks has none.
    fn cells(
        &self,
        group: usize,
        name: &str,
        rows: Range<usize>,
        fetched: &[(Range<u64>, Bytes)],
    ) -> Result<Vec<Option<Cell>>, SealedError> {
        guarded(|| self.decoded(group, name, rows, fetched))
    }

    fn decoded(
        &self,
        group: usize,
        name: &str,
        rows: Range<usize>,
        fetched: &[(Range<u64>, Bytes)],
    ) -> Result<Vec<Option<Cell>>, SealedError> {
        let columns = self.metadata.row_group(group).columns();
        let Some(column) = columns.iter().position(|chunk| chunk.column_path().string() == name) else {
            return Ok(vec![None; rows.len()]);
        };
        let chunk = self.chunk(group, column);
        let index = self.metadata.page_index_for_row_group(group);
        let reader = Arc::new(Fetched { len: self.len, ranges: fetched.to_vec() });
        let locations = index.page_locations(column).cloned();
        let pages = SerializedPageReader::new(reader, chunk, self.rows_in(group), locations)?;
        let pages: Box<dyn PageReader> = Box::new(pages);
        match get_column_reader(chunk.column_descr_ptr(), pages) {
            ColumnReader::ByteArrayColumnReader(reader) => {
                values(reader, rows, |bytes: ByteArray| String::from_utf8(bytes.data().to_vec()).ok().map(Cell::Text))
            }
            ColumnReader::Int64ColumnReader(reader) => values(reader, rows, |long| Some(Cell::Long(long))),
            ColumnReader::Int32ColumnReader(reader) => values(reader, rows, |int| Some(Cell::Int(int))),
            _ => Err(SealedError::Changed("a column of another type")),
        }
    }

    fn rows_in(&self, group: usize) -> usize {
        usize::try_from(self.metadata.row_group(group).num_rows()).unwrap_or(0)
    }

    /// The row group of a row, and its place there.
    fn place(&self, row: usize) -> Result<(usize, usize), SealedError> {
        let mut before = 0;
        for group in 0..self.metadata.num_row_groups() {
            let rows = self.rows_in(group);
            if row < before + rows {
                return Ok((group, row - before));
            }
            before += rows;
        }
        Err(SealedError::NoRow { row, rows: before })
    }

    fn chunk(&self, group: usize, column: usize) -> &ColumnChunkMetaData {
        self.metadata.row_group(group).column(column)
    }

    /// Each column of each row group, with its range.
    fn chunks(&self) -> impl Iterator<Item = (usize, usize, Range<u64>)> {
        self.metadata.row_groups().iter().enumerate().flat_map(|(group, columns)| {
            columns.columns().iter().enumerate().map(move |(column, chunk)| {
                let (start, len) = chunk.byte_range();
                (group, column, start..start + len)
            })
        })
    }

    /// The pages of a column, each with its first row.
    fn pages(&self, group: usize, column: usize) -> Result<Vec<(usize, Range<u64>)>, SealedError> {
        let index = self.metadata.page_index_for_row_group(group);
        let locations = index.page_locations(column).ok_or(SealedError::NotAPart("it has no page index"))?;
        let page = |first: i64, offset: i64, bytes: i32| {
            let (start, bytes) = (u64::try_from(offset).ok()?, u64::try_from(bytes).ok()?);
            Some((usize::try_from(first).ok()?, start..start.checked_add(bytes).filter(|end| *end <= self.len)?))
        };
        let pages = locations.iter().map(|it| page(it.first_row_index, it.offset, it.compressed_page_size));
        pages.collect::<Option<_>>().ok_or(SealedError::Changed("a page outside of the file"))
    }
}

/// Reads what may have changed: Parquet's reader panics at some changes.
fn guarded<T>(read: impl FnOnce() -> Result<T, SealedError>) -> Result<T, SealedError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or(Err(SealedError::Changed("the reader of Parquet gave up")))
}

/// Reads values of a column.
fn values<D: DataType>(
    mut reader: ColumnReaderImpl<D>,
    rows: Range<usize>,
    cell: impl Fn(D::T) -> Option<Cell>,
) -> Result<Vec<Option<Cell>>, SealedError> {
    let (mut levels, mut found) = (Vec::new(), Vec::new());
    let is_skipped = reader.skip_records(rows.start)? == rows.start;
    let (read, ..) = reader.read_records(rows.len(), Some(&mut levels), None, &mut found)?;
    if !is_skipped || read != rows.len() {
        return Err(SealedError::Changed("a column is too short"));
    }
    let mut found = found.into_iter();
    // A required column has no levels.
    let is_present = (0..rows.len()).map(|row| levels.get(row).is_none_or(|level| *level == 1));
    let cells =
        is_present.map(|is_present| if is_present { found.next().and_then(&cell).map(Some) } else { Some(None) });
    cells.collect::<Option<_>>().ok_or(SealedError::Changed("a value is missing"))
}
