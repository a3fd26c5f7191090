//! The readers of details as they were before data had codecs: frozen copies of commit be74a6d. Never change them.
//!
//! A release that is rolled back meets compressed items with this code.

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::JsonText;
use serde::Deserialize;

use crate::attributes::{Fault, Item};

/// The attributes of a payment's details.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "as it was")]
struct DetailsItem {
    pk: String,
    sk: String,
    account_id: String,
    payee_account_id: String,
    amount_minor: i64,
    currency: String,
    scheduled_for: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    due_at: String,
    due_date: String,
    shard: u16,
    created_at: String,
    created_by: String,
}

/// What `parse_details` did with data: for `dispatch`, replays, look-ups and settlement.
pub(super) fn parse_details(item: Item) -> Result<Option<JsonText>, Fault> {
    let item: DetailsItem = serde_dynamo::from_item(item)?;
    Ok(item.data.map(JsonText::from_stored).transpose()?)
}

/// What `decode_data` did: for lists with data.
pub(super) fn decode_data(mut item: Item) -> Result<Option<JsonText>, Fault> {
    let data = if let Some(AttributeValue::S(data)) = item.remove("data") { Some(data) } else { None };
    Ok(data.map(JsonText::from_stored).transpose()?)
}
