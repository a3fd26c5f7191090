//! The details of the bank's own amendments: the details in force, with another due time.
//!
//! The client's attributes are copied as they are stored. So attributes of a later release survive, and
//! the limits on new details do not apply to the copies.

use std::collections::HashMap;

use payments_model::{Details, DetailsKey};

use crate::error::StoreError;
use crate::item::Item;
use crate::payment::details_item::{decode_details, encode_details};
use crate::schema::KEPT_UNTIL;
use crate::store::Store;

/// The attributes that are the amendment's own. All other attributes are the client's.
const OWN: [&str; 11] = [
    "pk",
    "sk",
    "slotAt",
    "previous",
    "dueAt",
    "dueDate",
    "moveReason",
    "calendarId",
    "calendarVersion",
    "createdAt",
    "createdBy",
];

/// Details, together with the item that they were read from.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDetails {
    details: Details,
    pub(crate) item: Item,
}

impl StoredDetails {
    /// Reads details of a table.
    pub(crate) fn read(table: &str, item: Item) -> Result<Self, StoreError> {
        decode_details(table, item.clone()).map(|details| Self { details, item })
    }

    /// The attributes of the details that this release knows.
    pub fn known(&self) -> &Details {
        &self.details
    }

    /// The same, without the item.
    pub fn into_known(self) -> Details {
        self.details
    }
}

impl Store {
    /// Returns the details that exist at up to 100 keys, with their items, strongly consistent: 1 read unit per 4 KB. An
    /// unreadable item does not hide the other details.
    pub async fn stored_details(
        &self,
        wanted: &[DetailsKey],
    ) -> Result<HashMap<DetailsKey, Result<StoredDetails, StoreError>>, StoreError> {
        let history = &self.tables.history;
        let items = self.details_items(wanted, true).await?;
        Ok(items.into_iter().map(|(key, item)| (key, StoredDetails::read(history, item))).collect())
    }

    /// Writes the details of the bank's own amendment, with all other attributes of the details in
    /// force, unless they exist: 1 write unit per KB. Returns existing details.
    pub async fn put_redated_details(
        &self,
        in_force: &StoredDetails,
        redated: &Details,
    ) -> Result<Option<Details>, StoreError> {
        let (mut item, mut own) = (in_force.item.clone(), encode_details(redated)?);
        item.remove(KEPT_UNTIL);
        for name in OWN {
            match own.remove(name) {
                Some(value) => item.insert(name.to_owned(), value),
                None => item.remove(name),
            };
        }
        let history = &self.tables.history;
        let existing = self.put_if_absent(history, item).await?;
        existing.map(|item| decode_details(history, item)).transpose()
    }
}
