//! Writes a part.

use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::ColumnPath;

use crate::column::{self, CHECKSUM, COLUMNS};
use crate::error::SealedError;
use crate::part::{self, PartName};
use crate::row::{Cell, SealedRow};

/// The most rows of a part: two row groups.
pub const MAX_PART_ROWS: u32 = 10_000;

/// The bytes of rows, before compression, after which a part ends: 8,000 payments of 8 KB.
pub const MAX_PART_BYTES: usize = 64 << 20;

/// The rows of a row group.
pub const ROW_GROUP_ROWS: usize = 5_000;

/// Bytes of a page before compression. A read of one payment's data reads one: eight of 8 KB, which compress to about 8 KB.
const PAGE_BYTES: usize = 64 << 10;

/// Rows after which the writer looks at the size of a page: as many payments of 8 KB as a page has.
const LOOK_EVERY: usize = 8;

/// The level of zstd. Level 3 makes structured data a fifth larger, and levels above 9 hardly smaller.
const LEVEL: i32 = 9;

/// Writes a part. The same rows make the same bytes.
///
/// # Errors
/// [`SealedError::Parquet`] if the rows cannot be written.
pub fn encode(name: &PartName, rows: &[SealedRow]) -> Result<Vec<u8>, SealedError> {
    let mut writer = SerializedFileWriter::new(Vec::new(), column::schema()?, Arc::new(properties()?))?;
    for rows in rows.chunks(ROW_GROUP_ROWS) {
        let mut group = writer.next_row_group()?;
        for (place, column) in COLUMNS.iter().enumerate() {
            write_column(&mut group, rows, |row| row.cells.get(place).cloned().flatten(), column.is_required)?;
        }
        write_column(&mut group, rows, |row| Some(Cell::Long(row.checksum())), CHECKSUM.is_required)?;
        group.close()?;
    }
    writer.flush().map_err(|error| ParquetError::External(Box::new(error)))?;
    let hash = name.hash(writer.inner());
    for (key, value) in part::metadata(name, hash) {
        writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
    }
    Ok(writer.into_inner()?)
}

fn properties() -> Result<WriterProperties, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
        .set_data_page_size_limit(PAGE_BYTES)
        .set_write_batch_size(LOOK_EVERY)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_created_by("scheduled payments".to_owned());
    Ok(column::written()
        .fold(properties, |properties, column| {
            let path = || ColumnPath::from(column.name);
            let statistics = if column.has_bounds { EnabledStatistics::Chunk } else { EnabledStatistics::None };
            properties
                .set_column_dictionary_enabled(path(), column.repeats)
                .set_column_statistics_enabled(path(), statistics)
        })
        .build())
}

/// Writes a column of a row group.
fn write_column(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    rows: &[SealedRow],
    cell: impl Fn(&SealedRow) -> Option<Cell>,
    is_required: bool,
) -> Result<(), SealedError> {
    let Some(mut column) = group.next_column()? else { return Err(SealedError::NotAPart("it lacks a column")) };
    let cells: Vec<_> = rows.iter().map(cell).collect();
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let levels = (!is_required).then_some(levels.as_slice());
    let cells = cells.into_iter().flatten();
    let written = match column.untyped() {
        ColumnWriter::ByteArrayColumnWriter(writer) => {
            let texts = cells.filter_map(|cell| if let Cell::Text(text) = cell { Some(text) } else { None });
            let texts: Vec<_> = texts.map(|text| ByteArray::from(text.into_bytes())).collect();
            writer.write_batch(&texts, levels, None)
        }
        ColumnWriter::Int64ColumnWriter(writer) => {
            let longs = cells.filter_map(|cell| if let Cell::Long(long) = cell { Some(long) } else { None });
            writer.write_batch(&longs.collect::<Vec<_>>(), levels, None)
        }
        ColumnWriter::Int32ColumnWriter(writer) => {
            let ints = cells.filter_map(|cell| if let Cell::Int(int) = cell { Some(int) } else { None });
            writer.write_batch(&ints.collect::<Vec<_>>(), levels, None)
        }
        _ => return Err(SealedError::NotAPart("a column has another type")),
    };
    written?;
    Ok(column.close()?)
}
