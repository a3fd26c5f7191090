//! The evidence of a recount that counters are wrong, and their repair once a later one agrees.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, Delete, TransactWriteItem, Update};
use payments_model::{BusinessDate, DayCounts, UtcSecond};

use crate::counters::date_counters::{DateCounters, MOVES, attributes, counter_key, decode_counts, is_number};
use crate::error::{StoreError, failed};
use crate::item::{Item, item_key, text_of};
use crate::key::{LANES, Lane, checkpoint_partition};
use crate::store::Store;

/// The owner of the evidence.
pub(crate) const CONSUMER: &str = "recount";

/// The attribute of [`Evidence::found_at`].
const FOUND_AT: &str = "foundAt";

/// A recount of a date that differs from the date's counters, which did not change meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The recounted numbers.
    pub recounted: DayCounts,
    /// The number of writes of each lane of the counters.
    pub moves: [u64; LANES],
    /// The time at which this was first found.
    pub found_at: UtcSecond,
}

/// The stored finding of a date.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvidence {
    /// The evidence, if it can be read.
    pub evidence: Option<Evidence>,
    /// Attributes that this version does not know. They stay when the finding is replaced.
    unknown: Item,
}

/// The result of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repaired {
    /// The counters agree with the evidence now.
    Done,
    /// The counters or the evidence changed since they were read. Nothing was repaired.
    Moved,
}

impl Store {
    /// Returns the evidence of the dates from `from` to `to`, both included: 1 read unit per 4 KB,
    /// about 10 to 20 dates.
    pub async fn evidence(
        &self,
        from: BusinessDate,
        to: BusinessDate,
    ) -> Result<BTreeMap<BusinessDate, StoredEvidence>, StoreError> {
        let items = self.items_by_date(checkpoint_partition(CONSUMER), from, to).await?;
        let dated = |item: Item| Some((text_of(&item, "sk").parse().ok()?, stored_evidence(item)));
        Ok(items.into_iter().filter_map(dated).collect())
    }

    /// Stores the evidence of a date and replaces any earlier one: 1 write unit per KB. If two runs
    /// store evidence at once, the later one's stays, which at most delays a repair. Attributes of
    /// `earlier` that this version does not know stay.
    pub async fn keep_evidence(
        &self,
        date: BusinessDate,
        evidence: &Evidence,
        earlier: Option<&StoredEvidence>,
    ) -> Result<(), StoreError> {
        let moves = evidence.moves.map(|moves| AttributeValue::N(moves.to_string()));
        let own = [
            (MOVES.to_owned(), AttributeValue::L(moves.into())),
            (FOUND_AT.to_owned(), AttributeValue::S(evidence.found_at.to_string())),
        ];
        let unknown = earlier.into_iter().flat_map(|earlier| earlier.unknown.clone());
        let known = evidence_key(date).into_iter().chain(attributes(&evidence.recounted)).chain(own);
        let item = unknown.chain(known).collect();
        let put = self.client.put_item().table_name(&self.tables.payments).set_item(Some(item));
        put.send().await.map_err(failed("PutItem"))?;
        Ok(())
    }

    /// Deletes the evidence of a date: 1 write unit per KB.
    pub async fn drop_evidence(&self, date: BusinessDate) -> Result<(), StoreError> {
        let delete = self.client.delete_item().table_name(&self.tables.payments).set_key(Some(evidence_key(date)));
        delete.send().await.map_err(failed("DeleteItem"))?;
        Ok(())
    }

    /// Corrects the counters of a date from `seen` to `evidence`, and deletes the evidence, in one transaction. Its
    /// condition: nobody has written to any lane, and the evidence still exists. So of two repairs at once only one
    /// happens. 2 write units per KB for one lane and for the evidence, and 2 for each other lane: 18 as a rule.
    pub async fn repair_counters(
        &self,
        date: BusinessDate,
        seen: &DateCounters,
        evidence: &Evidence,
    ) -> Result<Repaired, StoreError> {
        let repaired = self.transact(self.repair_of(date, seen, evidence)).await?;
        Ok(if repaired.is_ok() { Repaired::Done } else { Repaired::Moved })
    }

    /// The actions of a repair.
    fn repair_of(
        &self,
        date: BusinessDate,
        seen: &DateCounters,
        evidence: &Evidence,
    ) -> Result<Vec<TransactWriteItem>, BuildError> {
        let action = TransactWriteItem::builder;
        let delete = Delete::builder()
            .table_name(&self.tables.payments)
            .set_key(Some(evidence_key(date)))
            .condition_expression("foundAt = :foundAt")
            .expression_attribute_values(":foundAt", AttributeValue::S(evidence.found_at.to_string()));
        let mut actions = vec![action().delete(delete.build()?).build()];
        actions.extend(self.correction_of(date, seen, &evidence.recounted)?);
        Ok(actions)
    }

    /// Corrects the counters of a date from `seen` to `recounted`, if nobody has written to any lane: 16 write units as a rule. Returns
    /// whether nobody had.
    pub async fn correct_counters(
        &self,
        date: BusinessDate,
        seen: &DateCounters,
        recounted: &DayCounts,
    ) -> Result<bool, StoreError> {
        Ok(self.transact(self.correction_of(date, seen, recounted)).await?.is_ok())
    }

    /// One lane takes the whole difference, the others must not change.
    fn correction_of(
        &self,
        date: BusinessDate,
        seen: &DateCounters,
        recounted: &DayCounts,
    ) -> Result<Vec<TransactWriteItem>, BuildError> {
        let action = TransactWriteItem::builder;
        let difference = recounted.minus(&seen.counts);
        let mut actions = Vec::with_capacity(LANES);
        for (lane, moves) in Lane::all().zip(seen.moves) {
            let (condition, moves) = (unmoved(moves), AttributeValue::N(moves.to_string()));
            if lane.index() == 0 {
                let mut update: Update = self.add_to_counter(lane, date, &difference)?;
                update.condition_expression = Some(condition.to_owned());
                update.expression_attribute_values.get_or_insert_default().insert(":moves".to_owned(), moves);
                actions.push(action().update(update).build());
            } else {
                let check = ConditionCheck::builder()
                    .table_name(&self.tables.payments)
                    .set_key(Some(counter_key(lane, date)))
                    .condition_expression(condition)
                    .expression_attribute_values(":moves", moves);
                actions.push(action().condition_check(check.build()?).build());
            }
        }
        Ok(actions)
    }
}

/// The condition that a lane has not been written since it was read. A lane that was never written may be missing.
fn unmoved(moves: u64) -> &'static str {
    if moves == 0 { "attribute_not_exists(moves) OR moves = :moves" } else { "moves = :moves" }
}

fn evidence_key(date: BusinessDate) -> Item {
    item_key(checkpoint_partition(CONSUMER), date.to_string())
}

fn stored_evidence(mut item: Item) -> StoredEvidence {
    let evidence = decode_evidence(&item);
    item.retain(|name, _| !["pk", "sk", MOVES, FOUND_AT].contains(&name.as_str()) && !is_number(name));
    StoredEvidence { evidence, unknown: item }
}

/// Decodes evidence, if it is whole.
fn decode_evidence(item: &Item) -> Option<Evidence> {
    let moves = item.get(MOVES)?.as_l().ok()?.iter();
    let moves = moves.map(|moves| moves.as_n().ok()?.parse().ok()).collect::<Option<Vec<u64>>>()?;
    let found_at = item.get(FOUND_AT)?.as_s().ok()?.parse().ok()?;
    Some(Evidence { recounted: decode_counts("", item).ok()?, moves: moves.try_into().ok()?, found_at })
}

#[cfg(test)]
mod tests {
    use payments_model::Status;

    use super::*;

    #[test]
    fn a_damaged_finding_is_ignored() {
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
