//! The folder of parts: lists, reads and writes them. It alone does I/O.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, TagSet,
};
use payments_files::FileKind;
use payments_model::{BusinessDate, PaymentId};

use crate::error::{DamagedPart, FolderError, SealedError};
use crate::part::{Part, TAIL_BYTES, Tail, read_all};
use crate::row::SealedRow;

/// The key of a date in the paths, by which SQL engines read the folders as a column.
const DATE: &str = "date=";

/// The tag by which the bucket's lifecycle deletes a part.
const KEPT_DAYS: &str = "kept-days";

/// The parts of dates.
#[derive(Debug)]
pub struct Folder<'a>(pub &'a dyn ObjectStore);

/// The result of a put.
#[derive(Debug, PartialEq, Eq)]
pub enum Put {
    /// The part is committed.
    Committed,
    /// The part was there: another run wrote the same one, or the reply of this put was lost.
    Adopted,
    /// Another run committed another part with this number.
    Exists,
}

/// The path of a part.
pub fn path(date: BusinessDate, number: u32) -> Path {
    FileKind::Sealed.path(&format!("{DATE}{date}/{number:06}"))
}

impl Folder<'_> {
    /// Returns the numbers of the parts of each date after this one.
    pub async fn parts(&self, after: BusinessDate) -> Result<BTreeMap<BusinessDate, BTreeSet<u32>>, FolderError> {
        let folder = Path::from(FileKind::Sealed.folder());
        let offset = Path::from(format!("{folder}/{DATE}{after}"));
        // The parts of the date itself follow its folder's name.
        let files: Vec<_> = self.0.list_with_offset(Some(&folder), &offset).try_collect().await?;
        let mut parts: BTreeMap<BusinessDate, BTreeSet<u32>> = BTreeMap::new();
        for (date, number) in files.iter().filter_map(|file| named(&file.location)).filter(|(date, _)| *date > after) {
            parts.entry(date).or_default().insert(number);
        }
        Ok(parts)
    }

    /// Reads the tail of a part.
    pub async fn part(&self, path: &Path) -> Result<Part, FolderError> {
        let mut bytes = TAIL_BYTES;
        loop {
            let options = GetOptions { range: Some(GetRange::Suffix(bytes)), ..GetOptions::default() };
            let tail = self.0.get_opts(path, options).await.map_err(|error| read_error(path, error))?;
            let (len, tail) = (tail.meta.size, tail.bytes().await?);
            match Part::from_tail(len, &tail).map_err(|error| damaged(path, error))? {
                Tail::Part(part) if is_named(&part, path) => return Ok(*part),
                Tail::Part(_) => return Err(damaged(path, SealedError::Changed("its name"))),
                Tail::Longer(more) => bytes = more,
            }
        }
    }

    /// Reads all rows of a part, whose bytes must be those that were written.
    pub async fn read(&self, path: &Path) -> Result<(Part, Vec<SealedRow>), FolderError> {
        let bytes = self.0.get(path).await.map_err(|error| read_error(path, error))?.bytes().await?;
        match read_all(&bytes).map_err(|error| damaged(path, error))? {
            (part, rows) if is_named(&part, path) => Ok((part, rows)),
            _ => Err(damaged(path, SealedError::Changed("its name"))),
        }
    }

    /// Adds the ids of a part's payments, and returns the number of rows of the parts up to it.
    pub async fn read_ids(&self, path: &Path, ids: &mut HashSet<PaymentId>) -> Result<u64, FolderError> {
        const COLUMN: &str = "payment_id";
        let part = self.part(path).await?;
        let ranges = part.ranges_of(COLUMN).map_err(|error| damaged(path, error))?;
        let bytes = self.0.get_ranges(path, &ranges).await?;
        let fetched: Vec<_> = ranges.into_iter().zip(bytes).collect();
        for text in part.texts_of(COLUMN, &fetched).map_err(|error| damaged(path, error))? {
            let id = text.parse().map_err(|_| damaged(path, SealedError::Changed("a payment's id")))?;
            ids.insert(id);
        }
        Ok(part.rows_up_to())
    }

    /// Puts a part, if none has its number, and reads it back. A tag tells the storage to delete it after so many days, unless they are 0.
    pub async fn put(&self, path: &Path, part: Vec<u8>, kept_days: u32) -> Result<Put, FolderError> {
        let (part, mut tags) = (Bytes::from(part), TagSet::default());
        if kept_days > 0 {
            tags.push(KEPT_DAYS, &kept_days.to_string());
        }
        let options = PutOptions { mode: PutMode::Create, tags, ..PutOptions::default() };
        let put = self.0.put_opts(path, PutPayload::from(part.clone()), options).await;
        let stored = match (&put, self.0.get(path).await) {
            // Another put of it has not ended.
            (Err(Error::AlreadyExists { .. }), Err(Error::NotFound { .. })) => return Ok(Put::Exists),
            // The reply of a put that was lost is in the folder.
            (_, Ok(stored)) => stored.bytes().await?,
            (Ok(_), Err(error)) => return Err(error.into()),
            (Err(_), Err(_)) => return put.map(|_| Put::Exists).map_err(FolderError::from),
        };
        match (stored == part, put.is_ok()) {
            (true, true) => Ok(Put::Committed),
            (true, false) => Ok(Put::Adopted),
            (false, true) => Err(FolderError::Differs(path.to_string())),
            (false, false) => Ok(Put::Exists),
        }
    }
}

/// The date and the number of a part, by its path. `None` for other files.
fn named(path: &Path) -> Option<(BusinessDate, u32)> {
    let rest = path.as_ref().strip_prefix(FileKind::Sealed.folder())?.strip_prefix('/')?;
    let (date, name) = rest.strip_prefix(DATE)?.split_once('/')?;
    let (date, number) = (date.parse().ok()?, name.strip_suffix(FileKind::Sealed.ending())?.parse().ok()?);
    (number > 0 && self::path(date, number) == *path).then_some((date, number))
}

/// Whether the part was written to this path.
fn is_named(part: &Part, path: &Path) -> bool {
    named(path).is_some_and(|(date, number)| (&*part.name.due_date, part.name.number) == (&*date.to_string(), number))
}

fn read_error(path: &Path, error: Error) -> FolderError {
    match error {
        Error::NotFound { .. } => missing(path),
        Error::PermissionDenied { .. } => damaged(path, SealedError::Refused(error)),
        error => error.into(),
    }
}

/// The error of a part that is not there, though a later one is.
pub fn missing(path: &Path) -> FolderError {
    damaged(path, SealedError::NotAPart("it is missing"))
}

/// The error of a part that cannot be used.
pub fn damaged(path: &Path, error: SealedError) -> FolderError {
    DamagedPart::new(path, error).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_parts_are_parts() {
        let date = "2026-11-20".parse().unwrap();
        assert_eq!(path(date, 7).as_ref(), "sealed/date=2026-11-20/000007.parquet");
        assert_eq!(named(&path(date, 7)), Some((date, 7)));
        for other in [
            "sealed/date=2026-11-20/000000.parquet",
            "sealed/date=2026-11-20/7.parquet",
            "sealed/date=2026-11-31/000007.parquet",
            "sealed/000007.parquet",
        ] {
            assert_eq!(named(&Path::from(other)), None, "{other}");
        }
    }
}
