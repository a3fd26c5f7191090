//! Putting a payment in: two writes, each of which changes nothing when it is repeated.

use payments_model::{Details, Head};

use crate::error::failed;
use crate::item::{decode_details, decode_head, encode_details, encode_head};
use crate::{Store, StoreError, item_bytes};

/// The largest details item, in bytes as DynamoDB counts them: 8 write units, and the bank's own
/// limit for a payment.
pub const MAX_DETAILS_BYTES: usize = 8_192;

/// What became of a details item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutDetails {
    /// It is new.
    Created,
    /// There was one already, and it stays as it is.
    Existing(Box<Details>),
}

/// What became of a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutHead {
    /// It is new.
    Created,
    /// There was one already, and it stays as it is.
    Existing(Box<Head>),
}

/// By how many bytes the details would pass [`MAX_DETAILS_BYTES`], if they do.
///
/// # Errors
/// Never in practice: details are plain strings and numbers.
pub fn details_excess(details: &Details) -> Result<Option<usize>, StoreError> {
    let excess = item_bytes(&encode_details(details)?).checked_sub(MAX_DETAILS_BYTES);
    Ok(excess.filter(|&excess| excess > 0))
}

impl Store {
    /// Writes a payment's details to the long-term table unless they are there: 8 write units for
    /// 8 KB, and the idempotency record.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails or the existing item cannot be read.
    pub async fn put_details(&self, details: &Details) -> Result<PutDetails, StoreError> {
        let existing = self.put_if_absent(&self.tables.history, encode_details(details)?).await?;
        match existing {
            None => Ok(PutDetails::Created),
            Some(item) => decode_details(item).map(|details| PutDetails::Existing(Box::new(details))),
        }
    }

    /// Writes a payment's head to the hot table unless it is there: 1 write unit, and 1 in `due`.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails or the existing item cannot be read.
    pub async fn put_head(&self, head: &Head) -> Result<PutHead, StoreError> {
        let existing = self.put_if_absent(&self.tables.payments, encode_head(head)?).await?;
        match existing {
            None => Ok(PutHead::Created),
            Some(item) => decode_head(item).map(|head| PutHead::Existing(Box::new(head))),
        }
    }

    /// Writes an item unless its key is taken; then the item that is there.
    pub(crate) async fn put_if_absent(
        &self,
        table: &str,
        item: crate::Item,
    ) -> Result<Option<crate::Item>, StoreError> {
        use aws_sdk_dynamodb::operation::put_item::PutItemError::ConditionalCheckFailedException;
        use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure::AllOld;
        let put = self
            .client
            .put_item()
            .table_name(table)
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(pk)")
            .return_values_on_condition_check_failure(AllOld)
            .send()
            .await;
        match put {
            Ok(_) => Ok(None),
            Err(error) => match error.as_service_error() {
                Some(ConditionalCheckFailedException(check)) => Ok(Some(check.item.clone().unwrap_or_default())),
                _ => Err(failed("PutItem")(error)),
            },
        }
    }
}
