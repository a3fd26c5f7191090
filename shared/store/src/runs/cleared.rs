//! The parts whose payments were cleared: `CLEARED` / a due date in the long-term table, beside the payments.
//!
//! So a restored table knows no clears but its own. Beside the dates stands the instant before which nothing is cleared.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::{BusinessDate, UtcSecond};

use crate::conditional::conditional;
use crate::error::{StoreError, failed};
use crate::item::{Fault, Item, item_key, key_of, text, text_of};
use crate::key::cleared_partition;
use crate::store::Store;

/// The days for which a restore can take changes back: tables come back to any instant of the last 35 days, and the log has 36.
pub const CHANGEABLE_DAYS: u32 = 36;

/// The sort key of the instant. It comes after all dates.
pub(crate) const NOT_BEFORE: &str = "NOT-BEFORE";

/// The parts of which the clear has begun, and those that it has cleared.
const BEGUN: &str = "begun";
const DONE: &str = "done";

/// The clears of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cleared {
    /// Of each date, the numbers of the parts of which the clear has begun: details may name their rows.
    pub begun: BTreeMap<BusinessDate, BTreeSet<u32>>,
    /// Of each date, the numbers of the parts that need no further look.
    pub done: BTreeMap<BusinessDate, BTreeSet<u32>>,
    /// The instant before which nothing is cleared.
    pub not_before: Option<UtcSecond>,
}

impl Cleared {
    fn add(&mut self, item: &Item) -> Result<(), Fault> {
        let sort = text_of(item, "sk");
        if sort == NOT_BEFORE {
            self.not_before = Some(text_of(item, "at").parse()?);
            return Ok(());
        }
        let date = sort.parse()?;
        for (name, all) in [(BEGUN, &mut self.begun), (DONE, &mut self.done)] {
            let numbers = match item.get(name) {
                None => BTreeSet::new(),
                Some(AttributeValue::Ns(numbers)) => numbers.iter().map(|it| it.parse()).collect::<Result<_, _>>()?,
                Some(_) => return Err("the numbers of parts have another type".into()),
            };
            all.insert(date, numbers);
        }
        Ok(())
    }
}

impl Store {
    /// Returns the clears of the dates from `first` on, strongly consistent: 1 read unit per 4 KB, some 20 dates of a million payments.
    pub async fn cleared(&self, first: BusinessDate) -> Result<Cleared, StoreError> {
        let (table, first) = (&self.tables.history, first.to_string());
        let read = self.items_between(table, cleared_partition(), &first, NOT_BEFORE);
        let mut cleared = Cleared::default();
        for item in &self.bounded("Query", read).await? {
            cleared.add(item).map_err(|fault| StoreError::unreadable(table, key_of(item), fault))?;
        }
        Ok(cleared)
    }

    /// Notes that details may name rows of a part from now on: 1 write unit.
    pub async fn begin_clear(&self, date: BusinessDate, part: u32) -> Result<(), StoreError> {
        self.note_part(date, part, BEGUN).await
    }

    /// Notes that all payments of a part were compared and cleared: 1 write unit.
    pub async fn end_clear(&self, date: BusinessDate, part: u32) -> Result<(), StoreError> {
        self.note_part(date, part, DONE).await
    }

    async fn note_part(&self, date: BusinessDate, part: u32, set: &str) -> Result<(), StoreError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.history)
            .set_key(Some(item_key(cleared_partition(), date.to_string())))
            .update_expression("ADD #set :part")
            .expression_attribute_names("#set", set)
            .expression_attribute_values(":part", AttributeValue::Ns(vec![part.to_string()]));
        update.send().await.map(drop).map_err(failed("UpdateItem"))
    }

    /// Notes that nothing is cleared before an instant, unless a later one is noted: 1 write unit.
    pub async fn clear_not_before(&self, at: UtcSecond) -> Result<(), StoreError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.history)
            .set_key(Some(item_key(cleared_partition(), NOT_BEFORE.to_owned())))
            .condition_expression("attribute_not_exists(pk) OR #at < :at")
            .update_expression("SET #at = :at")
            .expression_attribute_names("#at", "at")
            .expression_attribute_values(":at", text(at));
        conditional("UpdateItem", update.send().await).map(drop)
    }
}
