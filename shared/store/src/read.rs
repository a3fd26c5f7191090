//! Reads of any items by their keys, and the time that a read of several calls may take.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};

use crate::error::{StoreError, failed, incomplete};
use crate::item::Item;
use crate::store::Store;

/// The timeout of one call, with all its attempts and the waits between them, and so the most time that one read or one
/// write of the store takes. Functions of the API give their calls less. Methods that may write again:
/// [`Store::put_archived_head`] and [`Store::mark_reported`] twice, [`Store::cancel_payment`] three times.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// The most keys of one BatchGetItem, by DynamoDB's quota.
pub const MAX_BATCH_GET: usize = 100;

/// The most calls of one batch read. If keys are unprocessed after them, it counts as throttled.
const MAX_ROUNDS: usize = 8;

/// The settings of a batch read.
pub(crate) struct Reading {
    /// The attributes to read, and the names for `#0`, `#1` and so on; `None` reads all attributes.
    pub(crate) projection: Option<(&'static str, &'static [&'static str])>,
    pub(crate) consistent: bool,
}

impl Store {
    /// Ends a read of several calls after the time of one. A read can stop anywhere, but a write cannot.
    ///
    /// The read is boxed at once: it contains the SDK's large futures, and each caller's future
    /// would hold it three times.
    pub(crate) fn bounded<T>(
        &self,
        operation: &'static str,
        read: impl Future<Output = Result<T, StoreError>>,
    ) -> impl Future<Output = Result<T, StoreError>> {
        let bounded = tokio::time::timeout(timeout_of(&self.client), Box::pin(read));
        async move {
            match bounded.await {
                Ok(read) => read,
                Err(late) => Err(StoreError::Unavailable { operation, source: Box::new(late) }),
            }
        }
    }

    /// Returns the items at up to 100 keys.
    pub(crate) async fn batch_get(
        &self,
        table: &str,
        keys: Vec<Item>,
        reading: Reading,
    ) -> Result<Vec<Item>, StoreError> {
        self.bounded("BatchGetItem", self.batch_get_in_rounds(table, keys, reading)).await
    }

    /// Reads unprocessed keys again, in at most [`MAX_ROUNDS`] calls and while each call returns something.
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
            if let Some((projection, names)) = projection {
                let names = names.iter().enumerate();
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

    /// Returns the items of a partition whose sort keys are between two texts, strongly consistent: 1 read unit for each 4 KB.
    pub(crate) async fn items_between(
        &self,
        table: &str,
        partition: String,
        from: &str,
        to: &str,
    ) -> Result<Vec<Item>, StoreError> {
        let (mut items, mut after) = (Vec::new(), None);
        loop {
            let query = self
                .client
                .query()
                .table_name(table)
                .consistent_read(true)
                .set_exclusive_start_key(after)
                .key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to")
                .expression_attribute_values(":pk", AttributeValue::S(partition.clone()))
                .expression_attribute_values(":from", AttributeValue::S(from.to_owned()))
                .expression_attribute_values(":to", AttributeValue::S(to.to_owned()));
            let answer = query.send().await.map_err(failed("Query"))?;
            items.extend(answer.items.unwrap_or_default());
            after = answer.last_evaluated_key;
            if after.is_none() {
                return Ok(items);
            }
        }
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

/// The timeout that a client gives its calls.
fn timeout_of(client: &Client) -> Duration {
    let timeouts = client.config().timeout_config();
    timeouts.and_then(|timeouts| timeouts.operation_timeout()).unwrap_or(CALL_TIMEOUT)
}
