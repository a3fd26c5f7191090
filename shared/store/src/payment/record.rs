//! Clears the data of a sealed payment: the place of its row takes the place of the data.
//!
//! All other attributes stay, so a retry of the create or of an amendment is compared as ever.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::DateTime;
use payments_model::{PaymentData, SealedData, UtcSecond};

use crate::conditional::{conditional, equations};
use crate::error::StoreError;
use crate::item::{Item, number};
use crate::payment::archive::StoredHead;
use crate::payment::data;
use crate::payment::head_item::head_key;
use crate::payment::lookup::details_key;
use crate::payment::redate::StoredDetails;
use crate::schema::KEPT_UNTIL;
use crate::store::Store;

/// The least bytes of stored data that are cleared. Fewer stay: the place of a row would hardly be smaller.
pub const LEAST_CLEARED: usize = 256;

/// Returns the item that a clear leaves: the place of the row in place of the data. `None` if the item stays as it is, because it has
/// little data, or none.
pub fn cleared(item: &Item, sealed: &SealedData) -> Option<Item> {
    has_much_data(item).then(|| {
        let mut left = item.clone();
        for name in data::ATTRIBUTES {
            left.remove(name);
        }
        left.extend(data::attributes(&PaymentData::Sealed(sealed.clone())));
        left
    })
}

fn has_much_data(item: &Item) -> bool {
    data::stored_bytes(item) >= LEAST_CLEARED
}

impl StoredDetails {
    /// Whether a clear would make the item smaller.
    pub fn has_much_data(&self) -> bool {
        has_much_data(&self.item)
    }

    /// The item's end of retention.
    pub fn kept_until(&self) -> Option<UtcSecond> {
        kept_until(&self.item)
    }
}

impl StoredHead {
    /// The item's end of retention.
    pub fn kept_until(&self) -> Option<UtcSecond> {
        kept_until(&self.item)
    }
}

fn kept_until(item: &Item) -> Option<UtcSecond> {
    let seconds = item.get(KEPT_UNTIL)?.as_n().ok()?.parse().ok()?;
    UtcSecond::new(DateTime::from_timestamp(seconds, 0)?).ok()
}

impl Store {
    /// Puts the place of a sealed row in place of the data of these details, and the end of their retention, if they are as they were
    /// read: 1 write unit for each KB that they had. Without a place, the data stays. Returns whether it did.
    pub async fn clear_data(
        &self,
        stored: &StoredDetails,
        sealed: Option<&SealedData>,
        until: Option<UtcSecond>,
    ) -> Result<bool, StoreError> {
        let mut change = Change::new(&stored.item);
        if let Some(sealed) = sealed {
            let place = data::attributes(&PaymentData::Sealed(sealed.clone()));
            data::ATTRIBUTES.iter().for_each(|name| change.remove(name));
            place.into_iter().for_each(|(name, value)| change.set(&name, value));
        }
        change.keep_until(until);
        self.write_change(details_key(stored.known().details_key()), change).await
    }

    /// Sets the end of retention of a head of the long-term table, if it is as it was read: 1 write unit.
    pub async fn keep_head_until(&self, stored: &StoredHead, until: UtcSecond) -> Result<bool, StoreError> {
        let mut change = Change::new(&stored.item);
        change.keep_until(Some(until));
        self.write_change(head_key(&stored.known().key()), change).await
    }

    /// Makes a change of an item of the long-term table, if the item is as it was read.
    async fn write_change(&self, key: Item, change: Change<'_>) -> Result<bool, StoreError> {
        let Change { item, values: changed } = change;
        let (condition, mut names, mut values) = equations(item, " AND ");
        let (mut set, mut remove) = (Vec::new(), Vec::new());
        for (number, (name, value)) in changed.into_iter().enumerate() {
            let (alias, placeholder) = (format!("#new{number}"), format!(":new{number}"));
            match value {
                Some(value) => {
                    set.push(format!("{alias} = {placeholder}"));
                    values.insert(placeholder, value);
                }
                None => remove.push(alias.clone()),
            }
            names.insert(alias, name);
        }
        let clauses = [("SET", set), ("REMOVE", remove)];
        let clauses = clauses.iter().filter(|(_, terms)| !terms.is_empty());
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.history)
            .set_key(Some(key))
            .condition_expression(condition)
            .update_expression(
                clauses.map(|(verb, terms)| format!("{verb} {}", terms.join(", "))).collect::<Vec<_>>().join(" "),
            )
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values));
        Ok(conditional("UpdateItem", update.send().await)?.is_ok())
    }
}

/// New values of an item's attributes; `None` removes one.
struct Change<'i> {
    item: &'i Item,
    values: BTreeMap<String, Option<AttributeValue>>,
}

impl<'i> Change<'i> {
    fn new(item: &'i Item) -> Self {
        Self { item, values: BTreeMap::new() }
    }

    fn set(&mut self, name: &str, value: AttributeValue) {
        self.values.insert(name.to_owned(), Some(value));
    }

    fn remove(&mut self, name: &str) {
        self.values.insert(name.to_owned(), None);
    }

    fn keep_until(&mut self, until: Option<UtcSecond>) {
        if let Some(until) = until {
            self.set(KEPT_UNTIL, number(until.as_chrono().timestamp()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use payments_model::DataHash;

    use super::*;

    fn item(name: &str, value: AttributeValue) -> Item {
        HashMap::from([("pk".to_owned(), AttributeValue::S("PAY#1".to_owned())), (name.to_owned(), value)])
    }

    #[test]
    fn much_data_is_cleared_and_little_stays() {
        let sealed = SealedData { place: "2026-11-20/1/57".parse().unwrap(), hash: DataHash::new("{}") };
        for (bytes, is_cleared) in [(LEAST_CLEARED - 1, false), (LEAST_CLEARED, true)] {
            let frame = AttributeValue::B(vec![0; bytes].into());
            for item in [item("data", AttributeValue::S("x".repeat(bytes))), item("frame", frame)] {
                let left = cleared(&item, &sealed);
                assert_eq!(left.is_some(), is_cleared, "{bytes} bytes");
                let names = left.map(|mut left| {
                    assert_eq!(data::take(&mut left).unwrap(), Some(PaymentData::Sealed(sealed.clone())));
                    left.into_keys().collect::<Vec<_>>()
                });
                assert!(names.is_none_or(|names| names == ["pk"]));
            }
        }
        assert_eq!(cleared(&item("row", AttributeValue::S("2026-11-20/1/57".to_owned())), &sealed), None);
    }
}
