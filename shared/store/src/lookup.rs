//! Payments by their keys, strongly consistent except for what never changes.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::types::KeysAndAttributes;
use payments_model::{Details, Head, HeadKey, JsonText, PaymentId};

use crate::attributes::Fault;
use crate::error::{failed, incomplete};
use crate::item::{decode_details, decode_head, head_key, head_key_of, item_key, key_of, text_of};
use crate::key::{DETAILS_SORT, parse_payment_partition, payment_partition};
use crate::{Item, Store, StoreError, data};

/// The most keys of one BatchGetItem, by DynamoDB's quota.
pub const MAX_BATCH_GET: usize = 100;

/// The most calls of one batch read. If keys are unprocessed after them, it counts as throttled.
const MAX_ROUNDS: usize = 8;

/// How a batch is read.
struct Reading {
    /// The attributes to read, of all if there is none.
    projection: Option<&'static str>,
    consistent: bool,
}

impl Store {
    /// Returns a payment's details: 1 read unit per 4 KB.
    pub async fn details(&self, payment_id: PaymentId) -> Result<Option<Details>, StoreError> {
        let item = self.get(&self.tables.history, details_key(payment_id)).await?;
        item.map(|item| decode_details(&self.tables.history, item)).transpose()
    }

    /// Returns a payment's head: 1 read unit per table.
    ///
    /// The hot table is read before history: a head is in history before it leaves the hot table, and
    /// while it is in both, the hot table's is shown.
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

    /// Returns the data of up to 100 payments, in the order of `payments`. A payment whose data cannot be read, or
    /// that has no details, does not hide the others.
    pub async fn data_of(
        &self,
        payments: &[PaymentId],
    ) -> Result<Vec<Result<Option<JsonText>, StoreError>>, StoreError> {
        let keys = payments.iter().map(|&id| details_key(id)).collect();
        let reading = Reading { projection: Some("pk, sk, #0, #1, #2"), consistent: true };
        let items = self.batch_get(&self.tables.history, keys, reading).await?;
        let history = &self.tables.history;
        let mut found =
            items.into_iter().map(|item| decode_data(history, item)).collect::<Result<HashMap<_, _>, _>>()?;
        let data = |id: &PaymentId| {
            let missing = || StoreError::unreadable(history, key_of(&details_key(*id)), "the payment has no details");
            found.remove(id).unwrap_or_else(|| Err(missing()))
        };
        Ok(payments.iter().map(data).collect())
    }

    /// Returns the details of up to 100 payments, as far as they exist: half a read unit per 4 KB, because they never
    /// change. They may be missing for a moment after they were written. An unreadable item does not hide the others.
    pub async fn details_of(
        &self,
        payments: &[PaymentId],
    ) -> Result<HashMap<PaymentId, Result<Details, StoreError>>, StoreError> {
        let distinct: BTreeSet<PaymentId> = payments.iter().copied().collect();
        let keys = distinct.into_iter().map(details_key).collect();
        let items = self.batch_get(&self.tables.history, keys, Reading { projection: None, consistent: false }).await?;
        let history = &self.tables.history;
        let keyed = |item: Item| {
            let id = parse_payment_partition(text_of(&item, "pk"));
            let id = id.map_err(|error| StoreError::unreadable(history, key_of(&item), error))?;
            Ok((id, decode_details(history, item)))
        };
        items.into_iter().map(keyed).collect()
    }

    /// Returns the heads at up to 100 keys of the hot table, as far as they exist. An unreadable item
    /// does not hide the others.
    pub async fn hot_heads(&self, keys: &[HeadKey]) -> Result<Vec<(HeadKey, Result<Head, StoreError>)>, StoreError> {
        let table = &self.tables.payments;
        Ok(self.items_at(table, keys).await?.into_iter().map(|(key, item)| (key, decode_head(table, item))).collect())
    }

    /// Returns the items of heads at up to 100 keys of a table, as far as they exist.
    pub(crate) async fn items_at(&self, table: &str, keys: &[HeadKey]) -> Result<Vec<(HeadKey, Item)>, StoreError> {
        // DynamoDB rejects a batch read with a repeated key.
        let distinct: BTreeSet<&HeadKey> = keys.iter().collect();
        let keys = distinct.into_iter().map(head_key).collect();
        let items = self.batch_get(table, keys, Reading { projection: None, consistent: true }).await?;
        items.into_iter().map(|item| Ok((head_key_of(table, &item)?, item))).collect()
    }

    /// Returns the items at up to 100 keys.
    async fn batch_get(&self, table: &str, keys: Vec<Item>, reading: Reading) -> Result<Vec<Item>, StoreError> {
        self.bounded("BatchGetItem", self.batch_get_in_rounds(table, keys, reading)).await
    }

    /// Reads unprocessed keys again, in at most [`MAX_ROUNDS`] calls and while each call returns
    /// something.
    async fn batch_get_in_rounds(
        &self,
        table: &str,
        mut keys: Vec<Item>,
        Reading { projection, consistent }: Reading,
    ) -> Result<Vec<Item>, StoreError> {
        let mut found = Vec::with_capacity(keys.len());
        for _ in 0..MAX_ROUNDS {
            if keys.is_empty() {
                return Ok(found);
            }
            let mut request = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(consistent);
            if let Some(projection) = projection {
                let names = data::ATTRIBUTES.iter().enumerate();
                let names = names.map(|(place, name)| (format!("#{place}"), (*name).to_owned())).collect();
                request = request.projection_expression(projection).set_expression_attribute_names(Some(names));
            }
            let request = request.build().map_err(incomplete("BatchGetItem"))?;
            let get = self.client.batch_get_item().request_items(table, request);
            let mut answer = get.send().await.map_err(failed("BatchGetItem"))?;
            let items = answer.responses.as_mut().and_then(|tables| tables.remove(table)).unwrap_or_default();
            let unprocessed = answer.unprocessed_keys.as_mut().and_then(|tables| tables.remove(table));
            keys = unprocessed.map(|unprocessed| unprocessed.keys).unwrap_or_default();
            if items.is_empty() {
                break;
            }
            found.extend(items);
        }
        let source = "keys were left unprocessed".into();
        if keys.is_empty() { Ok(found) } else { Err(StoreError::Throttled { operation: "BatchGetItem", source }) }
    }

    /// Returns the item at a key: 1 read unit per 4 KB.
    pub(crate) async fn get(&self, table: &str, key: Item) -> Result<Option<Item>, StoreError> {
        let get = self.client.get_item().table_name(table).set_key(Some(key)).consistent_read(true);
        Ok(get.send().await.map_err(failed("GetItem"))?.item)
    }

    /// Returns an item, eventually consistent.
    pub(crate) async fn get_recent(&self, table: &str, key: Item) -> Result<Option<Item>, StoreError> {
        let get = self.client.get_item().table_name(table).set_key(Some(key));
        Ok(get.send().await.map_err(failed("GetItem"))?.item)
    }
}

fn details_key(payment_id: PaymentId) -> Item {
    item_key(payment_partition(payment_id), DETAILS_SORT.to_owned())
}

fn decode_data(table: &str, mut item: Item) -> Result<(PaymentId, Result<Option<JsonText>, StoreError>), StoreError> {
    let data = data::take(&mut item);
    let unreadable = |fault: Fault| StoreError::unreadable(table, key_of(&item), fault);
    let payment_id = parse_payment_partition(text_of(&item, "pk")).map_err(|error| unreadable(error.into()))?;
    Ok((payment_id, data.map_err(unreadable)))
}
