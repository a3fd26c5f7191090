//! What a recount found of a date, kept until a later one finds the same, and the repair of the
//! date's counters that the two of them justify.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, Delete, TransactWriteItem, Update};
use payments_model::{BusinessDate, DayCounts, UtcSecond};

use crate::counters::{DateCounters, MOVES, attributes, counter_key, decode_counts};
use crate::error::{Cancelled, cancelled, failed};
use crate::key::{LANES, Lane, checkpoint_partition};
use crate::{Item, Store, StoreError};

/// The consumer whose findings these are.
const CONSUMER: &str = "recount";

/// The attribute that tells when something was found.
const FOUND_AT: &str = "foundAt";

/// What a recount found of a date whose counters stood still and said something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The numbers as they should be.
    pub recounted: DayCounts,
    /// How often each lane of the counters had been written.
    pub moves: [u64; LANES],
    /// When that was found for the first time.
    pub found_at: UtcSecond,
}

/// What became of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repaired {
    /// The counters say what the evidence says.
    Done,
    /// The counters or the evidence are not what was read; nothing has changed.
    Moved,
}

impl Store {
    /// What was found of the dates from `from` to `to`, both included: 1 read unit per 4 KB, about
    /// 10 to 20 dates. What cannot be read is no evidence, but it is there.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails.
    pub async fn evidence(
        &self,
        from: BusinessDate,
        to: BusinessDate,
    ) -> Result<BTreeMap<BusinessDate, Option<Evidence>>, StoreError> {
        let items = self.items_by_date(checkpoint_partition(CONSUMER), from, to).await?;
        // What has no date for a sort key is nobody's.
        let dated = |item: &Item| item.get("sk").and_then(|sk| sk.as_s().ok()).and_then(|sk| sk.parse().ok());
        Ok(items.iter().filter_map(|item| Some((dated(item)?, decode_evidence(item)))).collect())
    }

    /// Keeps what was found of a date, instead of what was found before: 1 write unit per KB. Of
    /// two runs at once the later one's stays; that can cost a repair time, and nothing else.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails.
    pub async fn keep_evidence(&self, date: BusinessDate, evidence: &Evidence) -> Result<(), StoreError> {
        let moves = evidence.moves.map(|moves| AttributeValue::N(moves.to_string()));
        let own = [
            (MOVES.to_owned(), AttributeValue::L(moves.into())),
            (FOUND_AT.to_owned(), AttributeValue::S(evidence.found_at.to_string())),
        ];
        let item = evidence_key(date).into_iter().chain(attributes(&evidence.recounted)).chain(own).collect();
        let put = self.client.put_item().table_name(&self.tables.payments).set_item(Some(item));
        put.send().await.map_err(failed("PutItem"))?;
        Ok(())
    }

    /// Forgets what was found of a date: 1 write unit per KB.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails.
    pub async fn drop_evidence(&self, date: BusinessDate) -> Result<(), StoreError> {
        let delete = self.client.delete_item().table_name(&self.tables.payments).set_key(Some(evidence_key(date)));
        delete.send().await.map_err(failed("DeleteItem"))?;
        Ok(())
    }

    /// Corrects the counters of a date, `seen` and found wrong, to what `evidence` says, if nothing
    /// has written to any lane since, and if the evidence is still there: all in one transaction,
    /// so that of two repairs one is done. 2 write units per KB for one lane and for the evidence,
    /// 2 for each of the other lanes: 18, as a rule.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails.
    pub async fn repair_counters(
        &self,
        date: BusinessDate,
        seen: &DateCounters,
        evidence: &Evidence,
    ) -> Result<Repaired, StoreError> {
        const OPERATION: &str = "TransactWriteItems";
        let actions = self.repair_of(date, seen, evidence);
        let actions = actions.map_err(|e| StoreError::Refused { operation: OPERATION, source: Box::new(e) })?;
        match self.client.transact_write_items().set_transact_items(Some(actions)).send().await {
            Ok(_) => Ok(Repaired::Done),
            Err(error) => match cancelled(&error) {
                Some(Cancelled::ConditionFailed) => Ok(Repaired::Moved),
                Some(Cancelled::InConflict) => {
                    Err(StoreError::Throttled { operation: OPERATION, source: Box::new(error) })
                }
                None => Err(failed(OPERATION)(error)),
            },
        }
    }

    /// The actions of a repair: one lane takes the whole difference, the others stand still.
    fn repair_of(
        &self,
        date: BusinessDate,
        seen: &DateCounters,
        evidence: &Evidence,
    ) -> Result<Vec<TransactWriteItem>, BuildError> {
        let action = TransactWriteItem::builder;
        let difference = evidence.recounted.minus(&seen.counts);
        let delete = Delete::builder()
            .table_name(&self.tables.payments)
            .set_key(Some(evidence_key(date)))
            .condition_expression("foundAt = :foundAt")
            .expression_attribute_values(":foundAt", AttributeValue::S(evidence.found_at.to_string()));
        let mut actions = vec![action().delete(delete.build()?).build()];
        for (lane, moves) in Lane::all().zip(seen.moves) {
            let (stands_still, moves) = (unmoved(moves), AttributeValue::N(moves.to_string()));
            if lane.index() == 0 {
                let mut update: Update = self.add_to_counter(lane, date, &difference)?;
                update.condition_expression = Some(stands_still.to_owned());
                update.expression_attribute_values.get_or_insert_default().insert(":moves".to_owned(), moves);
                actions.push(action().update(update).build());
            } else {
                let check = ConditionCheck::builder()
                    .table_name(&self.tables.payments)
                    .set_key(Some(counter_key(lane, date)))
                    .condition_expression(stands_still)
                    .expression_attribute_values(":moves", moves);
                actions.push(action().condition_check(check.build()?).build());
            }
        }
        Ok(actions)
    }
}

/// The condition that a lane was written no more often than was seen. One that was never written
/// need not exist.
fn unmoved(moves: u64) -> &'static str {
    if moves == 0 { "attribute_not_exists(moves) OR moves = :moves" } else { "moves = :moves" }
}

fn evidence_key(date: BusinessDate) -> Item {
    Item::from([
        ("pk".to_owned(), AttributeValue::S(checkpoint_partition(CONSUMER))),
        ("sk".to_owned(), AttributeValue::S(date.to_string())),
    ])
}

/// Reads what was found, if it is whole.
fn decode_evidence(item: &Item) -> Option<Evidence> {
    let moves = item.get(MOVES)?.as_l().ok()?.iter();
    let moves = moves.map(|moves| moves.as_n().ok()?.parse().ok()).collect::<Option<Vec<u64>>>()?;
    let found_at = item.get(FOUND_AT)?.as_s().ok()?.parse().ok()?;
    Some(Evidence { recounted: decode_counts(item).ok()?, moves: moves.try_into().ok()?, found_at })
}

#[cfg(test)]
mod tests {
    use payments_model::Status;

    use super::*;

    #[test]
    fn damaged_evidence_is_none() {
        let number = |number: &str| AttributeValue::N(number.to_owned());
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let moves = |lanes: usize| AttributeValue::L(vec![number("7"); lanes]);
        let mut whole = evidence_key("2026-12-01".parse().unwrap());
        whole.extend([
            (Status::Pending.to_string(), number("3")),
            ("GBP.pen".to_owned(), number("18446744073709551616")),
            (MOVES.to_owned(), moves(LANES)),
            (FOUND_AT.to_owned(), text("2026-11-20T03:00:00Z")),
        ]);
        let read = decode_evidence(&whole).unwrap();
        assert_eq!((read.recounted.count(Status::Pending), read.moves), (3, [7; LANES]));
        assert_eq!(read.recounted.sum("GBP".parse().unwrap(), Status::Pending), 1 << 64);
        for (name, damage) in [
            ("PENDING", text("3")),
            ("GBP.pen", number("0.5")),
            (MOVES, moves(LANES - 1)),
            (MOVES, number("7")),
            (MOVES, AttributeValue::L(vec![number("-1"); LANES])),
            (FOUND_AT, text("yesterday")),
            (FOUND_AT, number("3")),
        ] {
            let mut item = whole.clone();
            item.insert(name.to_owned(), damage);
            assert_eq!(decode_evidence(&item), None, "{name}");
        }
        for missing in [MOVES, FOUND_AT] {
            let mut item = whole.clone();
            item.remove(missing);
            assert_eq!(decode_evidence(&item), None, "{missing}");
        }
    }
}
