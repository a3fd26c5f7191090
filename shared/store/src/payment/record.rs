//! Clears the data of a sealed payment: the place of its row takes the place of the data.
//!
//! All other attributes stay, so a retry of the create or of an amendment is compared as ever.

use payments_model::{PaymentData, SealedData};

use crate::conditional::{conditional, equations};
use crate::error::StoreError;
use crate::item::{Item, item_key, text_of};
use crate::payment::data;
use crate::payment::redate::StoredDetails;
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
}

impl Store {
    /// Puts the place of a sealed row in place of the data of these details, if they are as they were read: 1 write unit for each KB
    /// that they had. Returns whether it did.
    pub async fn clear_data(&self, stored: &StoredDetails, sealed: &SealedData) -> Result<bool, StoreError> {
        let place = data::attributes(&PaymentData::Sealed(sealed.clone()));
        let (condition, mut names, mut values) = equations(&stored.item, " AND ");
        let (mut set, mut remove) = (Vec::new(), Vec::new());
        for (number, name) in data::ATTRIBUTES.into_iter().enumerate() {
            let (alias, value) = (format!("#data{number}"), format!(":data{number}"));
            match place.iter().find(|(placed, _)| placed == name) {
                Some((_, placed)) => {
                    set.push(format!("{alias} = {value}"));
                    values.insert(value, placed.clone());
                }
                None => remove.push(alias.clone()),
            }
            names.insert(alias, name.to_owned());
        }
        let [pk, sk] = ["pk", "sk"].map(|name| text_of(&stored.item, name).to_owned());
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.history)
            .set_key(Some(item_key(pk, sk)))
            .condition_expression(condition)
            .update_expression(format!("SET {} REMOVE {}", set.join(", "), remove.join(", ")))
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values));
        Ok(conditional("UpdateItem", update.send().await)?.is_ok())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use aws_sdk_dynamodb::types::AttributeValue;
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
