//! Payments by transaction id.

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::{HeadKey, TransactionId};

use crate::error::{StoreError, failed};
use crate::payment::head_item::head_key_of;
use crate::schema::TRANSACTION;
use crate::store::Store;

/// The payments of one transaction id that are read: two are enough for an alarm.
const ENOUGH: i32 = 2;

impl Store {
    /// Returns the head keys of payments with this transaction id, eventually consistent: half a read
    /// unit. Two or more mean that the transaction service gave the id twice.
    pub async fn payments_of_transaction(&self, id: &TransactionId) -> Result<Vec<HeadKey>, StoreError> {
        let history = &self.tables.history;
        let query = self
            .client
            .query()
            .table_name(history)
            .index_name(TRANSACTION.name)
            .key_condition_expression("transactionId = :id")
            .expression_attribute_values(":id", AttributeValue::S(id.to_string()))
            .limit(ENOUGH);
        let answer = query.send().await.map_err(failed("Query"))?;
        answer.items.unwrap_or_default().iter().map(|entry| head_key_of(history, entry)).collect()
    }
}
