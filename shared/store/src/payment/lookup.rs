//! Reads payments by their keys: strongly consistent, except for items that never change.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::{Details, DetailsKey, Head, HeadKey, PaymentData, PaymentId};

use crate::error::{StoreError, failed};
use crate::item::{Fault, Item, item_key, key_of, text_of};
use crate::key::{
    DETAILS_SORT, KeyError, details_sort, parse_details_sort, parse_payment_partition, payment_partition,
};
use crate::payment::data;
use crate::payment::details_item::decode_details;
use crate::payment::head_item::{decode_head, head_key, head_key_of};
use crate::read::Reading;
use crate::store::Store;

impl Store {
    /// Returns a payment's first details, which have the key of its head: 1 read unit per 4 KB.
    pub async fn details(&self, payment_id: PaymentId) -> Result<Option<Details>, StoreError> {
        self.details_at(DetailsKey { payment_id, amendment: None }).await
    }

    async fn details_at(&self, key: DetailsKey) -> Result<Option<Details>, StoreError> {
        let item = self.get(&self.tables.history, details_key(key)).await?;
        item.map(|item| decode_details(&self.tables.history, item)).transpose()
    }

    /// Returns the details that a head names: 1 read unit per 4 KB, or no read if these are the payment's `first` details.
    pub async fn details_in_force(&self, head: &Head, first: Details) -> Result<Details, StoreError> {
        if head.amendment.is_none() { Ok(first) } else { self.existing_details(head.details_key()).await }
    }

    /// Returns all details that were in force, the latest first, without the payment's first details: 1
    /// read unit per 4 KB of each. They are read one after the other, because only an amendment's details
    /// name the details before them. `None` if `has_time` returned false before a read.
    pub async fn details_chain(
        &self,
        head: &Head,
        has_time: impl Fn() -> bool,
    ) -> Result<Option<Vec<Details>>, StoreError> {
        let (mut chain, mut next) = (Vec::new(), head.amendment);
        while let Some(name) = next {
            if !has_time() {
                return Ok(None);
            }
            let details = self.existing_details(DetailsKey { amendment: Some(name), ..head.details_key() }).await?;
            next = details.amendment.and_then(|amendment| amendment.previous);
            // Versions must fall along the chain, so the loop ends even if the items are damaged.
            if next.is_some_and(|previous| previous.version >= name.version) {
                let key = key_of(&details_key(details.details_key()));
                return Err(StoreError::unreadable(&self.tables.history, key, "it follows a later amendment"));
            }
            chain.push(details);
        }
        Ok(Some(chain))
    }

    /// Whether the long-term table has details of an amendment of the payment, in force or not: 1 read unit per 4 KB of the
    /// details that are found first.
    pub async fn has_amendments(&self, payment_id: PaymentId) -> Result<bool, StoreError> {
        let query = self
            .client
            .query()
            .table_name(&self.tables.history)
            .key_condition_expression("pk = :pk AND begins_with(sk, :sk)")
            .expression_attribute_values(":pk", AttributeValue::S(payment_partition(payment_id)))
            .expression_attribute_values(":sk", AttributeValue::S(format!("{DETAILS_SORT}#")))
            .projection_expression("pk")
            .consistent_read(true)
            .limit(1);
        Ok(query.send().await.map_err(failed("Query"))?.items.is_some_and(|items| !items.is_empty()))
    }

    async fn existing_details(&self, key: DetailsKey) -> Result<Details, StoreError> {
        let missing = || {
            StoreError::unreadable(
                &self.tables.history,
                key_of(&details_key(key)),
                "the payment's head names it, and it is missing",
            )
        };
        self.details_at(key).await?.ok_or_else(missing)
    }

    /// Returns a payment's head: 1 read unit per table.
    ///
    /// The hot table is read before history, because a head is in history before it leaves the hot table.
    /// If both tables have a head, the hot table's head is returned.
    pub async fn head(&self, key: &HeadKey) -> Result<Option<Head>, StoreError> {
        let read = async {
            match self.get(&self.tables.payments, head_key(key)).await? {
                Some(item) => decode_head(&self.tables.payments, item).map(Some),
                None => self.archived_head(key).await,
            }
        };
        self.bounded("GetItem", read).await
    }

    /// Returns a payment's head if it is in history: 1 read unit.
    pub async fn archived_head(&self, key: &HeadKey) -> Result<Option<Head>, StoreError> {
        let item = self.get(&self.tables.history, head_key(key)).await?;
        item.map(|item| decode_head(&self.tables.history, item)).transpose()
    }

    /// Returns the data of up to 100 details, in the order of `wanted`. Unreadable data and missing details do not hide the
    /// other data.
    pub async fn data_of(
        &self,
        wanted: &[DetailsKey],
    ) -> Result<Vec<Result<Option<PaymentData>, StoreError>>, StoreError> {
        let keys = wanted.iter().map(|&key| details_key(key)).collect();
        let reading =
            Reading { projection: Some(("pk, sk, #0, #1, #2, #3, #4, #5", &data::ATTRIBUTES)), consistent: true };
        let items = self.batch_get(&self.tables.history, keys, reading).await?;
        let history = &self.tables.history;
        let mut found =
            items.into_iter().map(|item| decode_data(history, item)).collect::<Result<HashMap<_, _>, _>>()?;
        let data = |key: &DetailsKey| {
            let missing = || StoreError::unreadable(history, key_of(&details_key(*key)), "the payment has no details");
            found.remove(key).unwrap_or_else(|| Err(missing()))
        };
        Ok(wanted.iter().map(data).collect())
    }

    /// Returns the details that exist at up to 100 keys: half a read unit per 4 KB, because details never change and an
    /// eventually consistent read is enough. New details may be missing for a moment. An unreadable item does not hide the
    /// other details.
    pub async fn details_of(
        &self,
        wanted: &[DetailsKey],
    ) -> Result<HashMap<DetailsKey, Result<Details, StoreError>>, StoreError> {
        let history = &self.tables.history;
        let items = self.details_items(wanted, false).await?;
        Ok(items.into_iter().map(|(key, item)| (key, decode_details(history, item))).collect())
    }

    /// Returns the items that exist at up to 100 keys of details.
    pub(crate) async fn details_items(
        &self,
        wanted: &[DetailsKey],
        consistent: bool,
    ) -> Result<Vec<(DetailsKey, Item)>, StoreError> {
        let distinct: BTreeSet<DetailsKey> = wanted.iter().copied().collect();
        let keys = distinct.into_iter().map(details_key).collect();
        let history = &self.tables.history;
        let items = self.batch_get(history, keys, Reading { projection: None, consistent }).await?;
        items.into_iter().map(|item| Ok((key_of_details(history, &item)?, item))).collect()
    }

    /// Returns the heads that exist at up to 100 keys of the hot table. An unreadable item does not hide the
    /// other heads.
    pub async fn hot_heads(&self, keys: &[HeadKey]) -> Result<Vec<(HeadKey, Result<Head, StoreError>)>, StoreError> {
        let table = &self.tables.payments;
        Ok(self.items_at(table, keys).await?.into_iter().map(|(key, item)| (key, decode_head(table, item))).collect())
    }

    /// Returns the items that exist at up to 100 keys of heads in a table.
    pub(crate) async fn items_at(&self, table: &str, keys: &[HeadKey]) -> Result<Vec<(HeadKey, Item)>, StoreError> {
        // DynamoDB rejects a batch read with a repeated key.
        let distinct: BTreeSet<&HeadKey> = keys.iter().collect();
        let keys = distinct.into_iter().map(head_key).collect();
        let items = self.batch_get(table, keys, Reading { projection: None, consistent: true }).await?;
        items.into_iter().map(|item| Ok((head_key_of(table, &item)?, item))).collect()
    }
}

pub(crate) fn details_key(key: DetailsKey) -> Item {
    item_key(payment_partition(key.payment_id), details_sort(key.amendment))
}

/// The key of a details item.
fn key_of_details(table: &str, item: &Item) -> Result<DetailsKey, StoreError> {
    let parse = || {
        let payment_id = parse_payment_partition(text_of(item, "pk"))?;
        Ok(DetailsKey { payment_id, amendment: parse_details_sort(text_of(item, "sk"))? })
    };
    parse().map_err(|error: KeyError| StoreError::unreadable(table, key_of(item), error))
}

fn decode_data(
    table: &str,
    mut item: Item,
) -> Result<(DetailsKey, Result<Option<PaymentData>, StoreError>), StoreError> {
    let data = data::take(&mut item);
    let unreadable = |fault: Fault| StoreError::unreadable(table, key_of(&item), fault);
    Ok((key_of_details(table, &item)?, data.map_err(unreadable)))
}
