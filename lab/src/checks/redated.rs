//! Amendments by the bank itself, judged by the changes of heads.

use chrono::TimeDelta;
use payments_machine::layers::attributes::{number, text};
use serde_json::json;

use crate::facts::closed_dates::{REDATE, opens_after};
use crate::facts::heads::{due_of, id_of, is_of_head};
use crate::world::bank::Bank;

/// The longest time of a run.
const LONGEST_RUN: TimeDelta = TimeDelta::minutes(15);

/// Notes the amendments by the bank that came into force, and which amendments left a payment where the bank had moved it.
pub(crate) fn learn(bank: &Bank) {
    if !bank.redates {
        return;
    }
    let changes = bank.changes.log();
    let begin = std::mem::replace(&mut bank.state().learned, changes.len());
    if begin == changes.len() {
        return;
    }
    let by_hand = bank.state().by_hand.clone();
    for (place, change) in changes.iter().enumerate().skip(begin) {
        let (Some(before), Some(after)) = (&change.before, &change.after) else { continue };
        let (name, previous) = (text(after, "details"), text(before, "details"));
        if name == previous || !is_of_head(&change.key.0) || by_hand.made(place) {
            continue;
        }
        let id = id_of(&change.key.1);
        let amount = json!(number(after, "amountMinor"));
        let mut state = bank.state();
        let Some(intent) = state.intents.iter_mut().find(|intent| intent.has_amount(&amount)) else { continue };
        if text(&after["amended"]["M"], "by") != REDATE {
            intent.keep_moved(id, name, previous);
            continue;
        }
        let (due_at, Some(content)) = (due_of(after).1, intent.in_force(id, previous)) else { continue };
        // The run judged the payment when it changed, or before.
        let due = content.due().filter(|_| content.currency == "GBP");
        let should = [LONGEST_RUN, TimeDelta::zero()]
            .map(|before| due.and_then(|due| opens_after(due, change.at - before, &bank.tz)));
        intent.amendments.push(content.redated((number(before, "version"), previous), due_at.to_owned()));
        drop(state);
        if !should.iter().any(|should| should.as_deref() == Some(due_at)) {
            bank.complain(format!("{id} was moved by the bank to {due_at}, and not to {should:?}"));
        }
    }
}
