//! Items as the SDK has them: their attributes, encoded and read.

use std::collections::HashMap;
use std::error::Error;

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::{Currency, Money, Reference, UtcSecond};
use serde::Serialize;

use crate::error::StoreError;

/// An item of the SDK.
pub type Item = HashMap<String, AttributeValue>;

/// The reason why an item cannot be read.
pub(crate) type Fault = Box<dyn Error + Send + Sync>;

/// The key attributes of an item.
pub(crate) fn item_key(partition: String, sort: String) -> Item {
    HashMap::from([("pk".to_owned(), AttributeValue::S(partition)), ("sk".to_owned(), AttributeValue::S(sort))])
}

/// A string attribute; empty if it is missing, because no stored string is empty.
pub(crate) fn text_of<'i>(item: &'i Item, name: &str) -> &'i str {
    item.get(name).and_then(|value| value.as_s().ok()).map_or("", String::as_str)
}

/// An item's key, for error messages.
pub(crate) fn key_of(item: &Item) -> String {
    format!("{} / {}", text_of(item, "pk"), text_of(item, "sk"))
}

pub(crate) fn to_item<T: Serialize>(item: &T) -> Result<Item, StoreError> {
    serde_dynamo::to_item(item).map_err(|error| StoreError::unreadable("(none)", "(new)", error))
}

/// An instant as an attribute.
pub(crate) fn text(at: UtcSecond) -> AttributeValue {
    AttributeValue::S(at.to_string())
}

/// A number as an attribute.
pub(crate) fn number(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// Parses a stored amount.
pub(crate) fn parse_money(amount_minor: i64, currency: &str) -> Result<Money, Fault> {
    Ok(Money { amount: amount_minor.try_into()?, currency: Currency::from_stored(currency)? })
}

pub(crate) fn parse_reference(text: Option<String>) -> Result<Option<Reference>, Fault> {
    Ok(text.map(|text| text.parse()).transpose()?)
}
