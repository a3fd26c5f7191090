//! Undos: an item each, `UNDO` / `<id>`, and `UNDO` / `open` with the ids of those whose runs are not at their end.
//!
//! Each change of an undo writes both items in one transaction, and replaces the undo whose revision is one less. So of two
//! runs only one moves the place.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem, Update};
use payments_model::second::Ticket;
use payments_model::{ActionName, Currency, Status, UndoId, UtcSecond};
use serde::{Deserialize, Serialize};

use crate::conditional::equations;
use crate::error::StoreError;
use crate::item::{Fault, Item, item_key, key_of, number, text_of, to_item};
use crate::key::undo_partition;
use crate::store::Store;

/// The sort key of the ids of open undos.
pub(crate) const OPEN: &str = "open";

/// The set of the open undos' ids.
const IDS: &str = "ids";

/// An undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undo {
    /// Its id.
    pub id: UndoId,
    /// The number of its changes so far.
    pub revision: u64,
    /// Its plans, in the order of their numbers.
    pub plans: Vec<UndoPlan>,
}

/// A plan of an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoPlan {
    /// Its number. The first is 1.
    pub number: u32,
    /// The fields of the console's form that selects the same again; empty if they are too long.
    pub select: BTreeMap<String, String>,
    /// The SHA-256 of its file, in lower-case hexadecimal digits.
    pub sha256: String,
    /// The reasons why it may lack selected payments.
    pub inexact: Vec<String>,
    /// The number of its payments.
    pub payments: u64,
    /// The sums of its payments. A payment whose create was cut off has no status.
    pub totals: UndoTotals,
    /// The time at which its due dates were held.
    pub held_at: UtcSecond,
    /// Its run, once it is approved.
    pub run: Option<UndoRun>,
}

/// Counts and sums in minor units, by status and currency.
pub type UndoTotals = BTreeMap<(Option<Status>, Currency), (u64, i128)>;

/// The run of an approved plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoRun {
    /// The action of the console that two persons agreed on. Once it is noted, the run goes on however long it takes.
    pub approval: Option<ActionName>,
    /// The ticket, if nobody approved the plan.
    pub ticket: Option<Ticket>,
    /// The time at which it began.
    pub began_at: UtcSecond,
    /// The number of the plan's payments whose results are stored.
    pub place: u64,
    /// The number of payments by their ends.
    pub ends: BTreeMap<String, u64>,
    /// The time at which it ended.
    pub ended_at: Option<UtcSecond>,
}

#[derive(Debug, Serialize, Deserialize)]
struct UndoItem {
    revision: u64,
    plans: Vec<PlanItem>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlanItem {
    number: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    select: BTreeMap<String, String>,
    sha256: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inexact: Vec<String>,
    payments: u64,
    totals: Vec<TotalItem>,
    held_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<RunItem>,
}

#[derive(Debug, Serialize, Deserialize)]
struct TotalItem {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    currency: String,
    count: u64,
    /// A text: it may exceed the numbers of JSON.
    sum: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RunItem {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approval: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ticket: Option<String>,
    began_at: String,
    place: u64,
    ends: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
}

impl Undo {
    /// Whether a run is not at its end.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.plans.iter().filter_map(|plan| plan.run.as_ref()).any(|run| run.ended_at.is_none())
    }

    fn item(&self) -> Result<Item, StoreError> {
        let plans = self.plans.iter().map(PlanItem::from).collect();
        let mut item = to_item(&UndoItem { revision: self.revision, plans })?;
        item.extend(undo_key(self.id.as_str()));
        Ok(item)
    }

    fn parse(id: &UndoId, item: Item) -> Result<Self, Fault> {
        let UndoItem { revision, plans } = serde_dynamo::from_item(item)?;
        if revision == u64::MAX {
            return Err("its revision is the last number, so no change could follow".into());
        }
        let plans = plans.into_iter().map(PlanItem::parse).collect::<Result<_, _>>()?;
        Ok(Self { id: id.clone(), revision, plans })
    }
}

impl From<&UndoPlan> for PlanItem {
    fn from(plan: &UndoPlan) -> Self {
        let total = |((status, currency), (count, sum)): (&(Option<Status>, Currency), &(u64, i128))| TotalItem {
            status: status.map(|status| status.to_string()),
            currency: currency.to_string(),
            count: *count,
            sum: sum.to_string(),
        };
        let run = plan.run.as_ref().map(|run| RunItem {
            approval: run.approval.map(|name| name.to_string()),
            ticket: run.ticket.as_ref().map(ToString::to_string),
            began_at: run.began_at.to_string(),
            place: run.place,
            ends: run.ends.clone(),
            ended_at: run.ended_at.map(|at| at.to_string()),
        });
        Self {
            number: plan.number,
            select: plan.select.clone(),
            sha256: plan.sha256.clone(),
            inexact: plan.inexact.clone(),
            payments: plan.payments,
            totals: plan.totals.iter().map(total).collect(),
            held_at: plan.held_at.to_string(),
            run,
        }
    }
}

impl PlanItem {
    fn parse(self) -> Result<UndoPlan, Fault> {
        let total = |TotalItem { status, currency, count, sum }: TotalItem| -> Result<_, Fault> {
            let status = status.map(|status| status.parse()).transpose()?;
            Ok(((status, Currency::from_stored(&currency)?), (count, sum.parse()?)))
        };
        let run = |run: RunItem| -> Result<_, Fault> {
            Ok(UndoRun {
                approval: run.approval.map(|name| name.parse()).transpose()?,
                ticket: run.ticket.map(|ticket| ticket.parse()).transpose()?,
                began_at: run.began_at.parse()?,
                place: run.place,
                ends: run.ends,
                ended_at: run.ended_at.map(|at| at.parse()).transpose()?,
            })
        };
        Ok(UndoPlan {
            number: self.number,
            select: self.select,
            sha256: self.sha256,
            inexact: self.inexact,
            payments: self.payments,
            totals: self.totals.into_iter().map(total).collect::<Result<_, _>>()?,
            held_at: self.held_at.parse()?,
            run: self.run.map(run).transpose()?,
        })
    }
}

impl Store {
    /// Returns an undo, strongly consistent: 1 read unit for each 4 KB.
    pub async fn undo(&self, id: &UndoId) -> Result<Option<Undo>, StoreError> {
        let (table, key) = (&self.tables.history, undo_key(id.as_str()));
        let Some(item) = self.get(table, key.clone()).await? else { return Ok(None) };
        let parsed = Undo::parse(id, item);
        parsed.map(Some).map_err(|fault| StoreError::unreadable(table, key_of(&key), fault))
    }

    /// Returns all undos by their ids, strongly consistent: 1 read unit for each 4 KB. An unreadable undo does not hide the others.
    pub async fn undos(&self) -> Result<Vec<(String, Result<Undo, StoreError>)>, StoreError> {
        let table = &self.tables.history;
        let items = self.items_between(table, undo_partition(), "0", "g").await?;
        let undos = items.into_iter().map(|item| {
            let (id, key) = (text_of(&item, "sk").to_owned(), key_of(&item));
            let parsed = id.parse().map_err(Fault::from).and_then(|id| Undo::parse(&id, item));
            (id, parsed.map_err(|fault| StoreError::unreadable(table, key, fault)))
        });
        Ok(undos.collect())
    }

    /// Returns the ids of the undos with a run that is not at its end, strongly consistent: 1 read unit.
    pub async fn open_undos(&self) -> Result<Vec<UndoId>, StoreError> {
        let (table, key) = (&self.tables.history, undo_key(OPEN));
        let Some(item) = self.get(table, key.clone()).await? else { return Ok(Vec::new()) };
        let ids = item.get(IDS).map(AttributeValue::as_ss);
        let Some(ids) = ids else { return Ok(Vec::new()) };
        let ids = ids.map_err(|_| "its ids are not a set of texts".into());
        let parse = |ids: &Vec<String>| ids.iter().map(|id| Ok(id.parse()?)).collect::<Result<_, Fault>>();
        ids.and_then(parse).map_err(|fault: Fault| StoreError::unreadable(table, key_of(&key), fault))
    }

    /// Changes an undo to this one, whose revision is one more than that of the undo it was made of: 2 write units for each KB, and 2
    /// for the open ones. Returns whether it did: another change may have been faster. Attributes that this version does not know stay.
    pub async fn change_undo(&self, undo: &Undo) -> Result<bool, StoreError> {
        let (assignments, names, values) = equations(&undo.item()?, ", ");
        let change = Update::builder()
            .table_name(&self.tables.history)
            .set_key(Some(undo_key(undo.id.as_str())))
            .update_expression(format!("SET {assignments}"))
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .condition_expression("revision = :seen OR (attribute_not_exists(pk) AND :seen = :never)")
            .expression_attribute_values(":seen", number(undo.revision.saturating_sub(1)))
            .expression_attribute_values(":never", number(0))
            .build();
        let open = Update::builder()
            .table_name(&self.tables.history)
            .set_key(Some(undo_key(OPEN)))
            .update_expression(if undo.is_open() { "ADD ids :ids" } else { "DELETE ids :ids" })
            .expression_attribute_values(":ids", AttributeValue::Ss(vec![undo.id.to_string()]))
            .build();
        let action = TransactWriteItem::builder;
        let actions =
            change.and_then(|change| Ok(vec![action().update(change).build(), action().update(open?).build()]));
        if self.transact(actions).await?.is_ok() {
            return Ok(true);
        }
        // A call whose reply was lost has written it.
        Ok(self.undo(&undo.id).await?.as_ref() == Some(undo))
    }
}

fn undo_key(sort: &str) -> Item {
    item_key(undo_partition(), sort.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item_bytes;

    fn undo(plans: u32) -> Undo {
        let at: UtcSecond = "2026-12-01T14:02:00Z".parse().unwrap();
        let gbp = Currency::from_stored("GBP").unwrap();
        let ends = [("cancelled".to_owned(), 1_999_999), ("claimed".to_owned(), 1)];
        let run = UndoRun {
            approval: "2026-12-01T14:00:00Z_00000000-0000-5000-8000-000000000001".parse().ok(),
            ticket: None,
            began_at: at,
            place: 2_000_000,
            ends: ends.into(),
            ended_at: Some(at),
        };
        let plan = |number| UndoPlan {
            number,
            select: [("client".to_owned(), "feed".to_owned())].into(),
            sha256: "f".repeat(64),
            inexact: Vec::new(),
            payments: 2_000_000,
            totals: [((Some(Status::Scheduled), gbp), (1_999_999, i128::from(i64::MAX) * 4)), ((None, gbp), (1, 5))]
                .into(),
            held_at: at,
            run: Some(run.clone()),
        };
        Undo { id: "0123456789abcdef".parse().unwrap(), revision: 7, plans: (1..=plans).map(plan).collect() }
    }

    #[test]
    fn an_undo_is_read_as_it_was_put_and_is_open_until_all_its_runs_have_ended() {
        let mut undo = undo(2);
        assert_eq!(Undo::parse(&undo.id, undo.item().unwrap()).unwrap(), undo);
        assert!(!undo.is_open() && item_bytes(&undo.item().unwrap()) < 1_024);
        undo.plans[0].run.as_mut().unwrap().ended_at = None;
        assert!(undo.is_open());
        assert_eq!(Undo::parse(&undo.id, undo.item().unwrap()).unwrap(), undo);
    }

    #[test]
    fn a_damaged_undo_is_unreadable() {
        let undo = undo(1);
        for (name, value) in [
            ("revision", Some(AttributeValue::S("1".to_owned()))),
            ("revision", None),
            ("revision", Some(number(u64::MAX))),
            ("plans", Some(AttributeValue::L(vec![number(1)]))),
            ("plans", None),
        ] {
            let mut item = undo.item().unwrap();
            match value.clone() {
                Some(value) => drop(item.insert(name.to_owned(), value)),
                None => drop(item.remove(name)),
            }
            assert!(Undo::parse(&undo.id, item).is_err(), "{name} {value:?}");
        }
    }
}
