//! Creates or amends a payment: two writes, and a repetition of either changes nothing.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use payments_model::{Details, Head, Status};

use crate::conditional::conditional;
use crate::error::StoreError;
use crate::item::Item;
use crate::key::due::DueSort;
use crate::payment::data;
use crate::payment::details_item::{client_bytes, decode_details, encode_details};
use crate::payment::head_item::{decode_head, encode_head};
use crate::payment::transition::Moved;
use crate::size::{MAX_DETAILS_BYTES, OWN_DETAILS_BYTES};
use crate::store::Store;

/// The attributes of a head that an amendment changes.
pub(crate) const AMENDED: [&str; 10] = [
    "version",
    "due",
    "moved",
    "details",
    "amended",
    "payeeAccountId",
    "amountMinor",
    "currency",
    "scheduledFor",
    "reference",
];

/// The result of writing details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutDetails {
    /// The details are new.
    Created,
    /// The payment already has these details, and they stay.
    Existing(Box<Details>),
    /// The client sent this many bytes more than a payment may have. Nothing was written.
    TooLarge(usize),
}

/// The result of writing a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutHead {
    /// The head is new.
    Created,
    /// The payment already has this head, and it stays.
    Existing(Box<Head>),
}

/// The number of bytes by which the client's content, with [`OWN_DETAILS_BYTES`], exceeds
/// [`MAX_DETAILS_BYTES`], if it does.
#[must_use]
pub fn details_excess(details: &Details) -> Option<usize> {
    let bytes = client_bytes(&details.instruction) + OWN_DETAILS_BYTES;
    bytes.checked_sub(MAX_DETAILS_BYTES).filter(|&excess| excess > 0)
}

impl Store {
    /// Writes details to the long-term table, unless they exist: 1 write unit per KB of the item. Data is compressed if
    /// that makes the item smaller. The details are the idempotency record of a create or an amendment.
    ///
    /// The size limit applies to the uncompressed data, so no answer depends on the compression.
    pub async fn put_details(&self, details: &Details) -> Result<PutDetails, StoreError> {
        if let Some(excess) = details_excess(details) {
            return Ok(PutDetails::TooLarge(excess));
        }
        let mut item = encode_details(details)?;
        data::compress(&mut item);
        match self.put_if_absent(&self.tables.history, item).await? {
            None => Ok(PutDetails::Created),
            Some(item) => {
                decode_details(&self.tables.history, item).map(|details| PutDetails::Existing(Box::new(details)))
            }
        }
    }

    /// Writes a payment's head to the hot table, unless it exists: 1 write unit, and 1 in `due`.
    pub async fn put_head(&self, head: &Head) -> Result<PutHead, StoreError> {
        match self.put_if_absent(&self.tables.payments, encode_head(head)?).await? {
            None => Ok(PutHead::Created),
            Some(item) => decode_head(&self.tables.payments, item).map(|head| PutHead::Existing(Box::new(head))),
        }
    }

    /// Changes a scheduled payment's head from `head` to `amended`, unless the stored head is no longer
    /// `head`: 1 write unit and 1 in `due`; with another due time, 2 in `due` and up to 2 in `moved`.
    pub async fn amend(&self, head: &Head, amended: &Head) -> Result<Moved, StoreError> {
        let mut item = encode_head(amended)?;
        let (mut sets, mut removes) = (Vec::new(), Vec::new());
        let mut values = HashMap::from([
            (":from".to_owned(), AttributeValue::S(Status::Scheduled.to_string())),
            (":fromVersion".to_owned(), AttributeValue::N(head.version.to_string())),
            (":fromDue".to_owned(), AttributeValue::S(DueSort::from_head(head).to_string())),
        ]);
        for name in AMENDED {
            match item.remove(name) {
                Some(value) => {
                    sets.push(format!("#{name} = :{name}"));
                    values.insert(format!(":{name}"), value);
                }
                None => removes.push(format!("#{name}")),
            }
        }
        let removes = if removes.is_empty() { String::new() } else { format!(" REMOVE {}", removes.join(", ")) };
        self.move_head(&head.key(), format!("SET {}{removes}", sets.join(", ")), values, &AMENDED).await
    }

    /// Writes an item, unless its key exists. Returns the existing item.
    pub(crate) async fn put_if_absent(&self, table: &str, item: Item) -> Result<Option<Item>, StoreError> {
        let put = self
            .client
            .put_item()
            .table_name(table)
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(pk)")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        Ok(conditional("PutItem", put)?.err().map(Option::unwrap_or_default))
    }
}
