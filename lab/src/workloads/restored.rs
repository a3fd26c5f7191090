//! The laws of a restore: only changes without a log entry or without details may be lost.

use std::collections::BTreeMap;

use anyhow::Result;
use payments_machine::layers::attributes::{Key, number, text};
use payments_model::UtcSecond;
use serde_json::{Value, json};

use crate::checks::checker::tables;
use crate::facts::heads::{Tables, id_of};
use crate::laws::amendments;
use crate::workloads::log_loss::LogLoss;
use crate::workloads::unsendable;
use crate::world::bank::Bank;

/// The loss of a restore.
pub(crate) struct Loss {
    /// The instant to which the hot table is restored.
    pub(crate) to: UtcSecond,
    /// The long-term table as it is restored, if it is.
    pub(crate) history: Option<BTreeMap<Key, Value>>,
    /// Both tables before.
    pub(crate) before: Tables,
    /// The last version of each payment in the log.
    pub(crate) logged: BTreeMap<String, u64>,
    /// The payments that were cancelled or amended by mistake, and the version that each had before.
    pub(crate) wrong: BTreeMap<String, u64>,
    /// The loss of the log, if there was one.
    pub(crate) log: Option<LogLoss>,
}

/// The log's changes survive, except those without details. Losses are noted, so that clients'
/// answers about them are not held against the bank.
pub(crate) fn check(bank: &Bank, loss: &Loss) -> Result<()> {
    let Loss { history, before, logged, wrong, .. } = loss;
    let after = tables(bank)?;
    if let Some(history) = history {
        unsendable::note(bank, (&before.history, history), &after);
    }
    let after = after.heads();
    for (key, head) in before.heads() {
        let (id, version) = (id_of(&key.1), number(head, "version"));
        let left = after.get(key).map_or(0, |head| number(head, "version"));
        if left >= version {
            continue;
        }
        let is_left_out = wrong.get(id).is_some_and(|before| left >= *before);
        let is_logged = logged.get(id).is_some_and(|logged| *logged > left);
        if !is_left_out && is_logged && has_details(history.as_ref(), head, left) {
            bank.complain(format!("{id} has version {left} after a restore, and {version} in the log"));
        }
        // The payment would be sent a second time, or although it was cancelled.
        let (was, is) = (text(head, "status"), after.get(key).map_or("", |head| text(head, "status")));
        if !is_left_out && logged.get(id) >= Some(&version) && was != "SCHEDULED" && is == "SCHEDULED" {
            bank.complain(format!("{id} is SCHEDULED after a restore, and {was} in the log"));
        }
        let mut state = bank.state();
        if !is_left_out {
            state.lost.insert(id.to_owned());
        }
        let amount = json!(number(head, "amountMinor"));
        for intent in state.intents.iter_mut().filter(|intent| intent.has_amount(&amount)) {
            intent.cancelled = false;
            intent.accepted.take_if(|_| left == 0);
            let taken_back = intent.amendments.iter_mut().filter(|amendment| amendment.seen >= left);
            taken_back.for_each(|amendment| amendment.accepted = false);
        }
    }
    Ok(())
}

/// Whether the long-term table as it was restored has the details that a head needs to come back beyond the version that is left of it:
/// the first ones, if nothing is left, and those of each amendment.
fn has_details(history: Option<&BTreeMap<Key, Value>>, head: &Value, left: u64) -> bool {
    let Some(history) = history else { return true };
    let id = id_of(text(head, "sk"));
    let mut name = text(head, "details");
    while amendments(name) + 1 > left {
        let sort = if name.is_empty() { "DETAILS".to_owned() } else { format!("DETAILS#{name}") };
        match history.get(&(format!("PAY#{id}"), sort)) {
            Some(found) if !name.is_empty() => name = text(found, "previous"),
            Some(_) => return true,
            None => return false,
        }
    }
    true
}
