//! The loss of the log's own table, beside the hot one: its extent, and how an operator brings the log back.
//!
//! The table is restored to an instant of its own, or an empty one takes its place. Then lost cursors are gone, the
//! numbers of the epoch that ended stay used, and the journal may have more events than the log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Result, anyhow};
use fastrand::Rng;
use object_store::ObjectStore;
use object_store::prefix::PrefixStore;
use payments_machine::layers::attributes::{Key, json_of_key, number};
use payments_model::UtcSecond;
use payments_restore::Source;
use serde_json::{Value, json};

use crate::checks::checker::scan;
use crate::plans::faults::FaultKind;
use crate::world::bank::Bank;
use crate::world::network::LOG;

/// A loss of the log's table.
pub(crate) struct LogLoss {
    /// Its copy and the copy's instant, if it can be restored.
    copy: Option<(BTreeMap<Key, Value>, UtcSecond)>,
}

impl LogLoss {
    /// Draws whether and how the log is lost: in every second restore it is. A copy is of this moment.
    pub(crate) fn draw(bank: &Bank, random: &mut Rng) -> Result<Option<Self>> {
        let number = random.u8(0..4);
        if number > 1 || !bank.faults.has(FaultKind::LogLost) {
            return Ok(None);
        }
        bank.faults.count(FaultKind::LogLost);
        if number == 0 {
            return Ok(Some(Self { copy: None }));
        }
        let mut items = scan(bank, LOG)?;
        // A table is restored item by item: its head may not count its last segment, or count one that is missing.
        match random.u8(0..3) {
            0 => drop(last_segment(&items).and_then(|last| items.remove(&last))),
            1 => count_one_less(&mut items),
            _ => {}
        }
        Ok(Some(Self { copy: Some((items, UtcSecond::new(bank.time.now())?)) }))
    }

    /// Takes the table away.
    pub(crate) fn lose(bank: &Bank) {
        bank.switches.log_lost.store(true, Ordering::Relaxed);
    }

    /// Puts the restored table, or an empty one, in the place of the one that is lost.
    pub(crate) fn replace(&self, bank: &Bank) -> Result<()> {
        let now = scan(bank, LOG)?;
        let epoch = now.values().map(|item| number(item, "epoch")).max().unwrap_or(0);
        bank.state().lost_epoch = Some(epoch);
        let none = BTreeMap::new();
        let copy = self.copy.as_ref().map_or(&none, |(items, _)| items);
        for key in now.keys().filter(|key| !copy.contains_key(*key)) {
            set(bank, LOG, key, None)?;
        }
        for (key, item) in copy {
            set(bank, LOG, key, Some(item))?;
        }
        bank.switches.log_lost.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Whether no copy is left.
    pub(crate) fn is_gone(&self) -> bool {
        self.copy.is_none()
    }

    /// The instant to which the table was restored, if it was.
    pub(crate) fn restored_to(&self) -> Option<UtcSecond> {
        self.copy.as_ref().map(|(_, at)| *at)
    }
}

/// The journal, from which events are read when the log is lost.
pub(crate) fn journal(files: &Arc<dyn ObjectStore>) -> Source {
    Source::Journal(Arc::new(PrefixStore::new(Arc::clone(files), "journal")))
}

fn last_segment(items: &BTreeMap<Key, Value>) -> Option<Key> {
    let is_epoch = |pk: &str| pk.strip_prefix("LOG#").is_some_and(|epoch| epoch.parse::<u32>().is_ok());
    items.keys().filter(|(pk, _)| is_epoch(pk)).max().cloned()
}

/// Sets the log's head back to before its last segment.
fn count_one_less(items: &mut BTreeMap<Key, Value>) {
    let head = ("LOG#HEAD".to_owned(), "HEAD".to_owned());
    if let Some(head) = items.get_mut(&head)
        && let next @ 3.. = number(head, "next")
    {
        head["next"] = json!({ "N": (next - 1).to_string() });
    }
}

/// Puts an item into a table as a restore does, or takes it away: no function sees the call.
pub(crate) fn set(bank: &Bank, table: &str, key: &Key, item: Option<&Value>) -> Result<()> {
    let (operation, input) = match item {
        Some(item) => ("PutItem", json!({ "TableName": table, "Item": item })),
        None => ("DeleteItem", json!({ "TableName": table, "Key": json_of_key(&key.0, &key.1) })),
    };
    bank.engine.call(operation, &input).map(drop).map_err(|error| anyhow!("{error}"))
}
