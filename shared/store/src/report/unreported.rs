//! The `unreported` index: settled payments that are in no report yet. One conditional write removes a payment from it.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use chrono::TimeDelta;
use payments_model::{BusinessDate, HeadKey, Shard, UtcSecond};

use crate::conditional::conditional;
use crate::error::{StoreError, failed};
use crate::item::{Item, key_of, text_of};
use crate::key::KeyError;
use crate::key::unreported::UnreportedSort;
use crate::payment::head_item::{head_key, head_key_of};
use crate::schema::{EXPIRES_AT, UNREPORTED};
use crate::store::Store;

/// Time for which a head stays in the hot table after its report, or after its date is over in every time zone if that
/// is later: the bank's own zone would add a fifth of a megabyte of time zones to the program. `ingest` completes a
/// missing head until 30 minutes after the date, so no late head can bring an expired payment back. DynamoDB deletes
/// expired items within days, free of charge.
const STAYS: TimeDelta = TimeDelta::hours(25);

/// The expiry of the head of a payment of this date that is reported at `now`.
#[must_use]
pub fn expiry_of_reported(due_date: BusinessDate, now: UtcSecond) -> UtcSecond {
    due_date.over_everywhere().max(now).saturating_add(STAYS)
}

/// The outcome of marking a payment as reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marked {
    /// The payment was in `unreported` under this key, and has left it.
    Done,
    /// The payment was not in `unreported` under this key.
    Before,
    /// The hot table has no head at this key.
    NoHead,
}

/// An entry of the `unreported` index, eventually consistent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreportedRow {
    /// The time of the settlement, and the payment's id.
    pub unreported: UnreportedSort,
    /// The key of its head.
    pub head: HeadKey,
}

/// The end of a page as DynamoDB's own key, because the last entry may be unreadable.
#[derive(Debug, Clone, PartialEq)]
pub struct UnreportedEnd(Item);

/// A page of rows.
#[derive(Debug)]
pub struct UnreportedPage {
    /// The payments, oldest settlement first. An unreadable one does not hide the others.
    pub rows: Vec<Result<UnreportedRow, StoreError>>,
    /// The start of the next page, if there may be more.
    pub end: Option<UnreportedEnd>,
}

impl Store {
    /// Returns a page of a shard of the `unreported` index, from its beginning or after `after`,
    /// eventually consistent: half a read unit per 4 KB, about 18 entries.
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
        let rows =
            answer.items.unwrap_or_default().iter().map(|entry| decode_row(&self.tables.payments, entry)).collect();
        Ok(UnreportedPage { rows, end: answer.last_evaluated_key.map(UnreportedEnd) })
    }

    /// Removes a payment from `unreported`, if it has this key there, and sets its head to expire: 1 write unit for the
    /// head and 1 for the index. Not a transition: version, `updatedAt` and trail stay. If the key differs, the failed
    /// condition costs 1 write unit. History has the payment since its settlement.
    pub async fn mark_reported(
        &self,
        key: &HeadKey,
        unreported: &UnreportedSort,
        expires: UtcSecond,
    ) -> Result<Marked, StoreError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.payments)
            .set_key(Some(head_key(key)))
            .condition_expression("unreported = :unreported")
            .update_expression(format!("REMOVE unreported SET {EXPIRES_AT} = :expires"))
            .expression_attribute_values(":unreported", AttributeValue::S(unreported.to_string()))
            .expression_attribute_values(":expires", AttributeValue::N(expires.as_chrono().timestamp().to_string()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        match conditional("UpdateItem", update)? {
            Ok(_) => Ok(Marked::Done),
            Err(Some(_)) => Ok(Marked::Before),
            Err(None) => Ok(Marked::NoHead),
        }
    }
}

fn decode_row(table: &str, entry: &Item) -> Result<UnreportedRow, StoreError> {
    let unreadable = |error: KeyError| StoreError::unreadable(table, key_of(entry), error);
    let unreported: UnreportedSort = text_of(entry, "unreported").parse().map_err(unreadable)?;
    let head = head_key_of(table, entry)?;
    if head.slot.payment_id == unreported.payment_id {
        Ok(UnreportedRow { unreported, head })
    } else {
        let why = format!("its unreported key is that of payment {}", unreported.payment_id);
        Err(StoreError::unreadable(table, key_of(entry), why))
    }
}
