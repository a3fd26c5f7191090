//! Archives a past payment: copies its head into history, and then removes the head from the hot table.
//!
//! In this order, at least one table has the head at any time. The payment's details are always in
//! history. The item is copied as it was read, so attributes of a later release survive. A settled
//! head is in history since its settlement, so the two items are only compared.

use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure};
use payments_model::{Head, HeadKey};

use crate::conditional::{conditional, equations};
use crate::error::StoreError;
use crate::item::Item;
use crate::payment::head_item::{decode_head, encode_head, head_key};
use crate::schema::{EXPIRES_AT, KEPT_UNTIL};
use crate::store::Store;

/// A head, together with the item that it was read from.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredHead {
    head: Head,
    pub(crate) item: Item,
}

impl StoredHead {
    /// Encodes a head that was not read from a table, such as a test's. Functions copy items as they read
    /// them: see [`Store::stored_heads`].
    pub fn new(head: Head) -> Result<Self, StoreError> {
        let item = encode_head(&head)?;
        Ok(Self { head, item })
    }

    /// Reads a head of a table.
    pub(crate) fn read(table: &str, item: Item) -> Result<Self, StoreError> {
        decode_head(table, item.clone()).map(|head| Self { head, item })
    }

    /// The attributes of the head that this release knows.
    pub fn known(&self) -> &Head {
        &self.head
    }

    /// The same, without the item.
    pub fn into_known(self) -> Head {
        self.head
    }
}

/// The item as it was read, at its head's key.
pub(crate) fn whole_item(stored: &StoredHead) -> Item {
    let mut item = stored.item.clone();
    item.extend(head_key(&stored.head.key()));
    item
}

/// The item as it was read, without the times at which a table may delete it.
pub(crate) fn item_of(stored: &StoredHead) -> Item {
    let mut item = whole_item(stored);
    for time_to_live in [EXPIRES_AT, KEPT_UNTIL] {
        item.remove(time_to_live);
    }
    item
}

/// The result of copying a head into history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Archived {
    /// History has this item.
    Done,
    /// History has another head of this payment, which stays.
    Different(Box<Head>),
    /// Another run has changed the copy in history at the same time.
    Changed,
}

/// The result of removing a head from the hot table.
#[derive(Debug, Clone, PartialEq)]
pub enum Removed {
    /// The head was removed.
    Done,
    /// The head was already gone.
    Gone,
    /// The head has changed since it was read, and stays.
    Changed,
    /// The removed head had attributes that the copy in history lacks. The caller must copy this head again.
    Grown(Box<StoredHead>),
}

impl Store {
    /// Returns the heads that exist at up to 100 keys of the hot table, with their items. An unreadable item
    /// does not hide the other heads.
    pub async fn stored_heads(
        &self,
        keys: &[HeadKey],
    ) -> Result<Vec<(HeadKey, Result<StoredHead, StoreError>)>, StoreError> {
        let table = &self.tables.payments;
        let items = self.items_at(table, keys).await?;
        Ok(items.into_iter().map(|(key, item)| (key, StoredHead::read(table, item))).collect())
    }

    /// Returns a head of the hot table with its item: 1 read unit.
    pub async fn stored_head(&self, key: &HeadKey) -> Result<Option<StoredHead>, StoreError> {
        let item = self.get(&self.tables.payments, head_key(key)).await?;
        item.map(|item| StoredHead::read(&self.tables.payments, item)).transpose()
    }

    /// Returns a head of the hot table with its item as it is or was a moment ago: half a read unit.
    pub async fn recent_head(&self, key: &HeadKey) -> Result<Option<StoredHead>, StoreError> {
        let item = self.get_recent(&self.tables.payments, head_key(key)).await?;
        item.map(|item| StoredHead::read(&self.tables.payments, item)).transpose()
    }

    /// Copies a head's item into history, unless history has a different head of the payment: 1 write unit,
    /// 1 in `due`, and 1 in `transaction` if the payment was processed.
    ///
    /// An earlier run may have copied the same head, and then an attribute that this release does not know
    /// may have changed. The hot table's item then replaces the copy, which costs a second write.
    pub async fn put_archived_head(&self, stored: &StoredHead) -> Result<Archived, StoreError> {
        let history = &self.tables.history;
        let Some(found) = self.put_if_absent(history, item_of(stored)).await? else { return Ok(Archived::Done) };
        let mut copy = item_of(stored);
        // History's item has its own end of retention, which stays.
        copy.extend(found.get(KEPT_UNTIL).map(|until| (KEPT_UNTIL.to_owned(), until.clone())));
        if found == copy {
            return Ok(Archived::Done);
        }
        let (condition, names, values) = equations(&found, " AND ");
        let head = decode_head(history, found)?;
        // Test: different_heads_in_both_tables_are_both_kept
        if head != stored.head {
            return Ok(Archived::Different(Box::new(head)));
        }
        // Test: a_run_replaces_the_copy_of_an_earlier_one_if_an_unknown_attribute_has_changed_since
        let put = self
            .client
            .put_item()
            .table_name(history)
            .set_item(Some(copy))
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .send()
            .await;
        Ok(if conditional("PutItem", put)?.is_ok() { Archived::Done } else { Archived::Changed })
    }

    /// Removes a head from the hot table, if all its attributes are unchanged and it waits for no report: 1
    /// write unit, and 1 in `due`.
    ///
    /// A condition cannot detect added attributes, so a head with added attributes comes back as
    /// [`Removed::Grown`]. A crash before this head is copied loses these attributes. So a later release
    /// that adds an attribute to settled heads must also change an existing attribute. It must also write
    /// to history, because heads in the hot table expire.
    pub async fn remove_head(&self, stored: &StoredHead) -> Result<Removed, StoreError> {
        let (condition, names, values) = equations(&stored.item, " AND ");
        let delete = self
            .client
            .delete_item()
            .table_name(&self.tables.payments)
            .set_key(Some(head_key(&stored.head.key())))
            .condition_expression(format!("{condition} AND attribute_not_exists(unreported)"))
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .return_values(ReturnValue::AllOld)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        Ok(match conditional("DeleteItem", delete)? {
            Ok(removed) => match removed.attributes.filter(|item| *item != stored.item) {
                // Test: an_attribute_that_is_added_or_changed_meanwhile_is_archived_too
                Some(item) => Removed::Grown(Box::new(StoredHead { head: stored.head.clone(), item })),
                None => Removed::Done,
            },
            Err(Some(_)) => Removed::Changed,
            Err(None) => Removed::Gone,
        })
    }
}
