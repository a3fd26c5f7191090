//! Heads rebuilt from their events, which only a restore writes.
//!
//! No other writer runs meanwhile. All the same, each write has the condition that the item is as
//! it was read. So a repeated step changes nothing more.

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::{Amended, AmendmentName, Details, Transition, UtcSecond};

use crate::conditional::{conditional, equations};
use crate::error::StoreError;
use crate::item::key_of;
use crate::key::unreported::UnreportedSort;
use crate::payment::archive::{StoredHead, item_of, whole_item};
use crate::payment::head_item::{encode_head, head_key};
use crate::payment::insert::AMENDED;
use crate::payment::settlement::item_after;
use crate::schema::EXPIRES_AT;
use crate::store::Store;

impl StoredHead {
    /// The head after a transition, with its other attributes as they were read. A settled one is
    /// as the long-term table has it.
    pub fn moved_by(&self, step: &Transition) -> Result<Self, StoreError> {
        let key = || key_of(&head_key(&self.known().key()));
        let item = item_after(self, step).map_err(|fault| StoreError::unreadable("(none)", key(), fault))?;
        Self::read("(none)", item)
    }

    /// The head after an amendment, with its other attributes as they were read.
    pub fn amended_by(&self, name: AmendmentName, details: &Details, amended: Amended) -> Result<Self, StoreError> {
        let amended = encode_head(&self.known().amended(name, details, amended))?;
        let mut item = whole_item(self);
        for attribute in AMENDED {
            match amended.get(attribute) {
                Some(value) => drop(item.insert(attribute.to_owned(), value.clone())),
                None => drop(item.remove(attribute)),
            }
        }
        Self::read("(none)", item)
    }

    /// A settled head as the long-term table has it, whether it waits for a report or not.
    pub fn in_history_table(&self) -> Result<Self, StoreError> {
        let mut item = item_of(self);
        item.remove("unreported");
        Self::read("(none)", item)
    }

    /// A settled head as the hot table has it while the long-term table has it, too: waiting for a report, or reported and expiring then.
    pub fn in_hot_table(&self, reported_until: Option<UtcSecond>) -> Result<Self, StoreError> {
        let head = self.known();
        let mut item = item_of(self);
        item.remove("unreported");
        match (reported_until, head.settled_at()) {
            (Some(expires), _) => {
                let seconds = expires.as_chrono().timestamp().to_string();
                item.insert(EXPIRES_AT.to_owned(), AttributeValue::N(seconds));
            }
            (None, Some(settled_at)) => {
                let unreported = UnreportedSort { settled_at, payment_id: head.payment_id };
                item.insert("unreported".to_owned(), AttributeValue::S(unreported.to_string()));
            }
            (None, None) => {
                let why = "the payment is not settled, so no report waits for it";
                return Err(StoreError::unreadable("(none)", key_of(&head_key(&head.key())), why));
            }
        }
        Self::read("(none)", item)
    }
}

impl Store {
    /// Puts a head into the hot table in the place of the head that was read, or of none, unless that has changed: 1
    /// write unit, and up to 2 in `due` and 2 in `unreported`. Returns whether it was put.
    pub async fn put_restored_head(&self, read: Option<&StoredHead>, new: &StoredHead) -> Result<bool, StoreError> {
        let put = self.client.put_item().table_name(&self.tables.payments).set_item(Some(whole_item(new)));
        let put = match read.map(|read| equations(&whole_item(read), " AND ")) {
            None => put.condition_expression("attribute_not_exists(pk)"),
            Some((condition, names, values)) => put
                .condition_expression(condition)
                .set_expression_attribute_names(Some(names))
                .set_expression_attribute_values(Some(values)),
        };
        Ok(conditional("PutItem", put.send().await)?.is_ok())
    }
}
