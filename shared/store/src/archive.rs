//! Archiving: a past payment's head is put into history, then removed from the hot table.
//!
//! In this order, a head is never in neither table. The details always are in history.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use payments_model::Head;

use crate::conditional::conditional;
use crate::item::head_key;
use crate::{PutHead, Store, StoreError};

/// The result of removing a head from the hot table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// The head was removed.
    Done,
    /// The head was already gone.
    Gone,
    /// The head has changed since it was read, and stays.
    Changed,
}

impl Store {
    /// Writes a head to history, unless one exists: 1 write unit, 1 in `due`, and 1 in `transaction`
    /// if it was processed.
    pub async fn put_archived_head(&self, head: &Head) -> Result<PutHead, StoreError> {
        self.put_head_into(&self.tables.history, head).await
    }

    /// Removes a head from the hot table, if it has not changed and has been reported: as many write
    /// units as putting it into history.
    pub async fn remove_head(&self, head: &Head) -> Result<Removed, StoreError> {
        let delete = self
            .client
            .delete_item()
            .table_name(&self.tables.payments)
            .set_key(Some(head_key(&head.key())))
            .condition_expression("version = :version AND attribute_not_exists(unreported)")
            .expression_attribute_values(":version", AttributeValue::N(head.version.to_string()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        Ok(match conditional("DeleteItem", delete)? {
            Ok(_) => Removed::Done,
            Err(Some(_)) => Removed::Changed,
            Err(None) => Removed::Gone,
        })
    }
}
