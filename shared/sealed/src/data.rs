//! Reads the data of payments from sealed rows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use futures::{StreamExt as _, stream};
use object_store::{Error, ObjectStore};
use payments_boot::{Clock, Deadline};
use payments_model::{BusinessDate, DataHash, Details, JsonText, PaymentData, PaymentId, SealedData};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{DamagedPart, FolderError, SealedError};
use crate::folder::{Folder, path};
use crate::row::SealedRow;

/// The most rows that are read at once: each may be in a part of its own, and take a megabyte.
pub const ROWS_AT_ONCE: usize = 16;

/// The data of a payment, or the reason why its row cannot be believed.
pub type ReadData = Result<JsonText, DamagedPart>;

/// The data of a row's versions.
#[derive(Deserialize)]
struct Versions {
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    data: Option<Box<RawValue>>,
}

/// The most time of a read: the requests of people wait for it.
const MOST_TIME: Duration = Duration::from_secs(5);

/// The time after which a page of a list takes no more sealed rows.
const PAGE_TIME: TimeDelta = TimeDelta::seconds(1);

/// The sealed rows, for functions that answer people.
#[derive(Debug, Clone)]
pub struct SealedRows {
    files: Arc<dyn ObjectStore>,
    clock: Clock,
}

impl SealedRows {
    /// Creates the rows of the parts in a storage.
    pub fn new(files: Arc<dyn ObjectStore>, clock: Clock) -> Self {
        Self { files, clock }
    }

    /// The end of a page that begins now and has sealed rows: people wait for it.
    #[must_use]
    pub fn page_end(&self) -> Deadline {
        Deadline::after(&self.clock, PAGE_TIME)
    }

    /// Reads data as [`Folder::data`] does, for at most 5 s.
    ///
    /// # Errors
    /// If the storage rejects a call, or does not answer it in time.
    pub async fn data(&self, wanted: &[(PaymentId, SealedData)]) -> Result<Vec<ReadData>, FolderError> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        self.clock.within(MOST_TIME, Folder(&*self.files).data(wanted)).await.ok_or(FolderError::Late)?
    }

    /// Puts the text of sealed data into details.
    ///
    /// # Errors
    /// As [`data`](Self::data), and if a row is damaged or of another payment.
    pub async fn opened<D: AsMut<[Details]>>(&self, mut all: D) -> Result<D, FolderError> {
        let mut sealed: Vec<_> = all.as_mut().iter_mut().filter(|details| details.is_sealed()).collect();
        let wanted: Vec<_> = sealed
            .iter()
            .filter_map(|details| Some((details.payment_id, details.instruction.data.as_ref()?.text().err()?.clone())))
            .collect();
        for (details, text) in sealed.iter_mut().zip(self.data(&wanted).await?) {
            details.instruction.data = Some(PaymentData::Text(text?));
        }
        Ok(all)
    }
}

impl Folder<'_> {
    /// Reads data from the rows that have it, in the order of `wanted`. A row that is damaged or of another payment, or a part that
    /// is missing or refused, hides no other.
    ///
    /// A part takes a call for its end of 128 KB, and one or a few for the pages of its rows; 16 parts are read at once.
    ///
    /// # Errors
    /// If the storage rejects a call or does not answer it.
    pub async fn data(&self, wanted: &[(PaymentId, SealedData)]) -> Result<Vec<ReadData>, FolderError> {
        let mut by_part: BTreeMap<(BusinessDate, u32), Vec<usize>> = BTreeMap::new();
        for (place, (_, sealed)) in wanted.iter().enumerate() {
            by_part.entry((sealed.place.date, sealed.place.part)).or_default().push(place);
        }
        let read = |((date, part), places): (_, Vec<usize>)| async move {
            let of_part: Vec<_> = places.iter().filter_map(|place| wanted.get(*place)).collect();
            let read = match self.data_of_part(date, part, &of_part).await {
                Err(FolderError::Damaged(part)) => places.iter().map(|_| Err(part.clone())).collect(),
                Err(FolderError::Files(error @ (Error::NotFound { .. } | Error::PermissionDenied { .. }))) => {
                    let part = DamagedPart::new(&path(date, part), SealedError::Refused(error));
                    places.iter().map(|_| Err(part.clone())).collect()
                }
                read => read?,
            };
            Ok::<Vec<_>, FolderError>(places.into_iter().zip(read).collect())
        };
        let mut all = BTreeMap::new();
        let mut parts = stream::iter(by_part).map(read).buffer_unordered(ROWS_AT_ONCE);
        while let Some(part) = parts.next().await {
            all.extend(part?);
        }
        Ok(all.into_values().collect())
    }

    async fn data_of_part(
        &self,
        date: BusinessDate,
        number: u32,
        wanted: &[&(PaymentId, SealedData)],
    ) -> Result<Vec<ReadData>, FolderError> {
        let path = path(date, number);
        let part = self.part(&path).await?;
        let rows: Vec<Option<usize>> = wanted.iter().map(|(_, sealed)| sealed.place.row.try_into().ok()).collect();
        // A row that the part does not have is an error of its own payment alone.
        let mut ranges: Vec<_> = rows.iter().flatten().filter_map(|row| part.ranges(*row).ok()).flatten().collect();
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        ranges.dedup();
        let bytes = self.0.get_ranges(&path, &ranges).await?;
        let fetched: Vec<_> = ranges.into_iter().zip(bytes).collect();
        let read = |((id, sealed), row): (&&(PaymentId, SealedData), Option<usize>)| {
            let row = row.ok_or(SealedError::Changed("a row is missing")).and_then(|row| part.row(row, &fetched));
            let text = row.and_then(|row| row.text_with(*id, sealed.hash));
            text.map_err(|error| DamagedPart::new(&path, error))
        };
        Ok(wanted.iter().zip(rows).map(read).collect())
    }
}

impl SealedRow {
    /// The data of a row's payment, or of one of its versions, with this hash.
    ///
    /// # Errors
    /// [`SealedError::Changed`] if the row is of another payment, or has no such data.
    pub fn text_with(&self, id: PaymentId, hash: DataHash) -> Result<JsonText, SealedError> {
        if self.text("paymentId") != Some(&*id.to_string()) {
            return Err(SealedError::Changed("the row is of another payment"));
        }
        let versions = self.versions().and_then(|versions| serde_json::from_str::<Versions>(versions).ok());
        let of_versions = versions.iter().flat_map(|it| &it.versions).filter_map(|version| version.data.as_deref());
        let mut texts = self.text("data").into_iter().chain(of_versions.map(RawValue::get));
        let text = texts.find(|it| DataHash::new(it) == hash);
        text.and_then(|text| JsonText::from_stored(text.to_owned()).ok())
            .ok_or(SealedError::Changed("the row has not the payment's data"))
    }
}
