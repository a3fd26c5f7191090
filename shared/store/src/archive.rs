//! Moving the head of a past payment to history: put there, then removed here, so that at no moment
//! it is in neither table. Its details stay where they always were.

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::Head;

use crate::error::failed;
use crate::item::{decode_head, encode_head, head_key};
use crate::{PutHead, Store, StoreError};

/// What became of the removal of a head from the hot table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// It is gone now.
    Done,
    /// It was gone already.
    Gone,
    /// It is there, but not the one that was read: it stays.
    Changed,
}

impl Store {
    /// Writes a head to history unless there is one: 1 write unit, 1 in `due`, and, where it was
    /// processed, 1 in `transaction`.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails or the existing item cannot be read.
    pub async fn put_archived_head(&self, head: &Head) -> Result<PutHead, StoreError> {
        let existing = self.put_if_absent(&self.tables.history, encode_head(head)?).await?;
        match existing {
            None => Ok(PutHead::Created),
            Some(item) => decode_head(item).map(|head| PutHead::Existing(Box::new(head))),
        }
    }

    /// Removes a head from the hot table, if it is still the one that was read and no report waits
    /// for it: as many write units as it cost to put it to history.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails.
    pub async fn remove_head(&self, head: &Head) -> Result<Removed, StoreError> {
        use aws_sdk_dynamodb::operation::delete_item::DeleteItemError::ConditionalCheckFailedException;
        use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure::AllOld;
        let delete = self
            .client
            .delete_item()
            .table_name(&self.tables.payments)
            .set_key(Some(head_key(&head.key())))
            .condition_expression("version = :version AND attribute_not_exists(unreported)")
            .expression_attribute_values(":version", AttributeValue::N(head.version.to_string()))
            .return_values_on_condition_check_failure(AllOld)
            .send()
            .await;
        match delete {
            Ok(_) => Ok(Removed::Done),
            Err(error) => match error.as_service_error() {
                Some(ConditionalCheckFailedException(check)) if check.item.is_some() => Ok(Removed::Changed),
                Some(ConditionalCheckFailedException(_)) => Ok(Removed::Gone),
                _ => Err(failed("DeleteItem")(error)),
            },
        }
    }
}
