//! Reads finished payments for sealed dates: the keys of a date's heads, then the heads, then all details.

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::{HeadKey, PaymentId};

use crate::error::{StoreError, failed};
use crate::index::due::{DUE_KEYS, DueRange, due_of};
use crate::item::Item;
use crate::key::due::DueSort;
use crate::key::{DETAILS_SORT, payment_partition};
use crate::payment::archive::StoredHead;
use crate::payment::head_item::head_key_of;
use crate::payment::redate::StoredDetails;
use crate::store::Store;

/// A page of the long-term table's `due` index.
#[derive(Debug)]
pub struct ArchivedPage {
    /// The payments, earliest due first. An unreadable one does not hide the others.
    pub keys: Vec<Result<(DueSort, HeadKey), StoreError>>,
    /// The place after which the next page begins, if there may be more.
    pub next: Option<ArchivedPlace>,
}

/// A place in the long-term table's `due` index.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchivedPlace(Item);

impl Store {
    /// Returns a page of keys of the long-term table's `due` index, eventually consistent: half a read unit per 4 KB,
    /// about 12 entries.
    pub async fn archived_page(
        &self,
        range: &DueRange,
        after: Option<ArchivedPlace>,
    ) -> Result<ArchivedPage, StoreError> {
        let history = &self.tables.history;
        let query = self.due_query(history, range.shard, range.bounds()).projection_expression(DUE_KEYS);
        let query = query.set_exclusive_start_key(after.map(|ArchivedPlace(key)| key));
        let answer = query.send().await.map_err(failed("Query"))?;
        let key = |item: &Item| Ok((due_of(history, item)?, head_key_of(history, item)?));
        let keys = answer.items.unwrap_or_default().iter().map(key).collect();
        Ok(ArchivedPage { keys, next: answer.last_evaluated_key.map(ArchivedPlace) })
    }

    /// Returns the heads that exist at up to 100 keys of the long-term table, with their items: 1 read unit each. An unreadable item
    /// does not hide the other heads.
    pub async fn archived_heads(
        &self,
        keys: &[HeadKey],
    ) -> Result<Vec<(HeadKey, Result<StoredHead, StoreError>)>, StoreError> {
        let table = &self.tables.history;
        let items = self.items_at(table, keys).await?;
        Ok(items.into_iter().map(|(key, item)| (key, StoredHead::read(table, item))).collect())
    }

    /// Returns all details of a payment, in force or not, with their items, strongly consistent: 1 read unit per 4 KB of all of them.
    pub async fn all_details(&self, payment_id: PaymentId) -> Result<Vec<StoredDetails>, StoreError> {
        self.bounded("Query", self.all_details_in_pages(payment_id)).await
    }

    async fn all_details_in_pages(&self, payment_id: PaymentId) -> Result<Vec<StoredDetails>, StoreError> {
        let history = &self.tables.history;
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let query = self
                .client
                .query()
                .table_name(history)
                .key_condition_expression("pk = :pk AND begins_with(sk, :sk)")
                .expression_attribute_values(":pk", AttributeValue::S(payment_partition(payment_id)))
                .expression_attribute_values(":sk", AttributeValue::S(DETAILS_SORT.to_owned()))
                .consistent_read(true)
                .set_exclusive_start_key(after);
            let answer = query.send().await.map_err(failed("Query"))?;
            for item in answer.items.unwrap_or_default() {
                all.push(StoredDetails::read(history, item)?);
            }
            after = answer.last_evaluated_key;
            if after.is_none() {
                return Ok(all);
            }
        }
    }
}
