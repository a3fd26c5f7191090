//! The transaction service as tests want it: what it says of a payment depends on the payment alone,
//! how often and in which order it says so is up to the dice.

use anyhow::Result;
use payments_queue::Queue;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::time::Time;

/// What it says of the payment of a request: every fourth amount fails, and every odd one is echoed
/// with its account and due time.
pub(crate) fn result_of(request: &Value) -> Value {
    let amount = request["amountMinor"].as_u64().unwrap_or(0);
    let mut result = if amount.is_multiple_of(4) {
        json!({ "paymentId": request["paymentId"], "outcome": "FAILED", "reason": "no money" })
    } else {
        json!({ "paymentId": request["paymentId"], "outcome": "PROCESSED", "transactionId": format!("T-{amount}") })
    };
    if amount % 2 == 1 {
        result["accountId"] = request["accountId"].clone();
        result["dueAt"] = request["dueAt"].clone();
    }
    result
}

/// Reads all requests and returns what they say.
pub(crate) fn read(requests: &Queue, time: &Time) -> Result<Vec<Value>> {
    let mut read = Vec::new();
    loop {
        let received = requests.receive(10, time.now());
        if received.is_empty() {
            return Ok(read);
        }
        for message in received {
            requests.delete(&message.receipt_handle);
            read.push(serde_json::from_str(&message.body)?);
        }
    }
}

/// Reports the results of requests: each once and in order, or as the dice fall.
pub(crate) fn report(requests: &[Value], results: &Queue, time: &Time, dice: Option<&mut Dice>) -> Result<()> {
    let mut reports: Vec<Value> = requests.iter().map(result_of).collect();
    if let Some(dice) = dice {
        let again: Vec<Value> = reports.iter().filter(|_| dice.one_in(2)).cloned().collect();
        reports.extend(again);
        dice.shuffle(&mut reports);
    }
    for report in reports {
        results.send(report.to_string(), time.now())?;
    }
    Ok(())
}
