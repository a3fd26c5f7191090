//! Payments whose amendment a restore left without details.
//!
//! Nothing is sent for them. An operator ends them as docs/restore.md says.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, anyhow, ensure};
use chrono::TimeDelta;
use payments_machine::layers::attributes::{Key, number, text};
use payments_model::{PaymentId, Settlement};
use serde_json::{Value, json};

use crate::facts::heads::{Tables, id_of};
use crate::time::pause;
use crate::workloads::clients::cancel;
use crate::world::bank::Bank;

/// How long the operator waits for what was done to show.
const LOOKS_EVERY: TimeDelta = TimeDelta::hours(1);

/// How often the operator looks at most.
const LOOKS: u32 = 72;

/// What the transaction service says of a payment of which it has never heard.
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
    let id = id_of(text(head, "sk"));
    let (amount, currency) = (number(head, "amountMinor"), text(head, "currency"));
    let is_known = bank.requests.sent().clone().iter().any(|sent| sent.request["paymentId"] == id);
    let mut state = bank.state();
    let settlement = state.service.settings().settlement_of(id.parse::<PaymentId>()?);
    let result = match settlement {
        Settlement::Processed(transaction) if is_known => {
            json!({
                "v": 1, "kind": "settlement", "paymentId": id, "amountMinor": amount, "currency": currency, "payeeAccountId": text(head, "payeeAccountId"),
                "status": "PROCESSED", "transactionId": transaction.as_str(),
            })
        }
        Settlement::Failed(failure) if is_known => {
            json!({
                "v": 1, "kind": "settlement", "paymentId": id, "amountMinor": amount, "currency": currency, "payeeAccountId": text(head, "payeeAccountId"),
                "status": "FAILED", "failureCode": failure.code().as_str(), "failureReason": failure.reason(),
            })
        }
        _ => {
            state.intents[place].contested = true;
            state.by_hand.refused.insert(id.to_owned());
            json!({
                "v": 1, "kind": "settlement", "paymentId": id, "amountMinor": amount, "currency": currency, "payeeAccountId": text(head, "payeeAccountId"),
                "status": "FAILED", "failureReason": REFUSED,
            })
        }
    };
    bank.queues.results.send(result.to_string(), bank.time.now()).map(drop).map_err(|error| anyhow!("{error}"))
}
