//! The `unreported` index: settled payments that no report has taken yet. Being in it is the state
//! "not reported", and leaving it takes one conditional write.

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::{HeadKey, Shard};

use crate::error::failed;
use crate::item::{head_key, head_key_of};
use crate::key::{KeyError, UnreportedSort};
use crate::schema::UNREPORTED;
use crate::{Item, Store, StoreError};

/// A settled payment as the `unreported` index shows it: eventually, and only where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreportedRow {
    /// When it was settled, and which payment it is.
    pub unreported: UnreportedSort,
    /// Where its head is.
    pub head: HeadKey,
}

/// Where a page of one shard ended, as DynamoDB says it: also an entry that cannot be read can be
/// the last of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct UnreportedEnd(Item);

/// A page of rows, and where it ended, if there may be more.
#[derive(Debug)]
pub struct UnreportedPage {
    /// The payments, oldest settlement first. One that cannot be read does not hide the others.
    pub rows: Vec<Result<UnreportedRow, StoreError>>,
    /// Where the next page begins.
    pub end: Option<UnreportedEnd>,
}

impl Store {
    /// One page of a shard of the `unreported` index, from its beginning or after `after`: half a
    /// read unit per 4 KB of index entries, about 18 of them. Eventually consistent, as indexes are.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails.
    pub async fn unreported_page(
        &self,
        shard: Shard,
        after: Option<&UnreportedEnd>,
        limit: u16,
    ) -> Result<UnreportedPage, StoreError> {
        let query = self
            .client
            .query()
            .table_name(&self.tables.payments)
            .index_name(UNREPORTED.name)
            .key_condition_expression("#shard = :shard")
            // SHARD is one of DynamoDB's reserved words.
            .expression_attribute_names("#shard", "shard")
            .expression_attribute_values(":shard", AttributeValue::N(shard.get().to_string()))
            .set_exclusive_start_key(after.map(|UnreportedEnd(key)| key.clone()))
            .limit(limit.into());
        let answer = query.send().await.map_err(failed("Query"))?;
        let rows = answer.items.unwrap_or_default().iter().map(decode_row).collect();
        Ok(UnreportedPage { rows, end: answer.last_evaluated_key.map(UnreportedEnd) })
    }

    /// Takes a payment out of `unreported`, if it still is there under this key: 1 write unit for
    /// the head and 1 for the index. Version, `updatedAt` and trail stay: it is no transition. Says
    /// whether it did; if not, another did, and the condition that failed cost 1 write unit.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails.
    pub async fn mark_reported(&self, key: &HeadKey, unreported: &UnreportedSort) -> Result<bool, StoreError> {
        use aws_sdk_dynamodb::operation::update_item::UpdateItemError::ConditionalCheckFailedException;
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.payments)
            .set_key(Some(head_key(key)))
            .condition_expression("unreported = :unreported")
            .update_expression("REMOVE unreported")
            .expression_attribute_values(":unreported", AttributeValue::S(unreported.to_string()))
            .send()
            .await;
        match update {
            Ok(_) => Ok(true),
            Err(error) => match error.as_service_error() {
                Some(ConditionalCheckFailedException(_)) => Ok(false),
                _ => Err(failed("UpdateItem")(error)),
            },
        }
    }
}

fn decode_row(item: &Item) -> Result<UnreportedRow, StoreError> {
    let key = item.get("unreported").and_then(|key| key.as_s().ok()).map_or("", String::as_str);
    let unreadable = |why: String| StoreError::Unreadable { key: key.to_owned(), why };
    let unreported: UnreportedSort = key.parse().map_err(|error: KeyError| unreadable(error.to_string()))?;
    let head = head_key_of(item)?;
    if head.sort.payment_id == unreported.payment_id {
        Ok(UnreportedRow { unreported, head })
    } else {
        Err(unreadable(format!("it is on the head of payment {}", head.sort.payment_id)))
    }
}
