//! Payments whose amendment a restore left without details.
//!
//! Nothing is sent for them. An operator ends them as docs/restore.md says.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, ensure};
use chrono::TimeDelta;
use payments_machine::layers::attributes::{Key, number, text};
use payments_model::PaymentId;
use serde_json::{Value, json};

use crate::facts::heads::{Tables, id_of, transfer};
use crate::facts::results::{failed, from_settlement};
use crate::time::pause;
use crate::workloads::clients::cancel;
use crate::world::bank::Bank;

/// The time between the operator's looks for the effect.
const LOOKS_EVERY: TimeDelta = TimeDelta::hours(1);

/// The most looks of the operator.
const LOOKS: u32 = 72;

/// The transaction service's reason for a payment that it has never had.
const REFUSED: &str = "its details are lost";

/// Notes the details that heads name, and that the long-term table had before it was restored, and has no more.
pub(crate) fn note(bank: &Bank, (before, restored): (&BTreeMap<Key, Value>, &BTreeMap<Key, Value>), after: &Tables) {
    for ((_, sk), head) in after.heads() {
        let (id, mut name) = (id_of(sk), text(head, "details"));
        let key = |name: &str| (format!("PAY#{id}"), format!("DETAILS#{name}"));
        while let Some(details) = restored.get(&key(name)) {
            name = text(details, "previous");
        }
        if before.contains_key(&key(name)) {
            let (mut state, amount) = (bank.state(), json!(number(head, "amountMinor")));
            let owners = state.intents.iter_mut().filter(|intent| intent.has_amount(&amount));
            owners.for_each(|intent| intent.lost_details.push(name.to_owned()));
        }
    }
}

/// Ends all of them.
pub(crate) async fn end(bank: &Arc<Bank>) -> Result<()> {
    let waiting = unsendable(bank).len();
    if waiting > 0 {
        bank.state()
            .restores
            .push(format!("{waiting} payments without the details of their amendment, which are ended by hand"));
    }
    for looked in 0.. {
        let left = unsendable(bank);
        let Some((place, head)) = left.first() else { return Ok(()) };
        ensure!(looked < LOOKS, "{} of payment {place} is not over, and cannot be sent", text(head, "sk"));
        for (place, head) in &left {
            match text(head, "status") {
                "SCHEDULED" => cancel(bank, *place).await,
                _ => ask_the_service(bank, *place, head)?,
            }
        }
        pause(LOOKS_EVERY).await;
    }
    Ok(())
}

/// The payments that wait and cannot be sent, by the place of their intent.
fn unsendable(bank: &Bank) -> Vec<(usize, Value)> {
    let lost: Vec<(usize, Vec<String>)> =
        bank.state().intents.iter().map(|intent| intent.lost_details.clone()).enumerate().collect();
    let waiting = lost.into_iter().filter_map(|(place, lost)| {
        let head = if lost.is_empty() { None } else { bank.head_of(place) };
        let head = head.filter(|head| lost.iter().any(|lost| lost == text(head, "details")))?;
        matches!(text(&head, "status"), "SCHEDULED" | "PENDING").then_some((place, head))
    });
    waiting.collect()
}

/// The transaction service sends the result again of a payment that it knows. It refuses another one for good.
fn ask_the_service(bank: &Bank, place: usize, head: &Value) -> Result<()> {
    let (id, transfer) = (id_of(text(head, "sk")), transfer(head));
    let is_known = bank.requests.sent().iter().any(|sent| sent.request["paymentId"] == id);
    let result = {
        let mut state = bank.state();
        let settlement = state.service.settings().settlement_of(id.parse::<PaymentId>()?);
        if is_known {
            from_settlement(&transfer, &settlement)
        } else {
            state.intents[place].contested = true;
            state.by_hand.refused.insert(id.to_owned());
            failed(&transfer, REFUSED)
        }
    };
    bank.send_result(&result)
}
