//! The tests' transaction service: its result depends on the payment alone; how often and in which order it sends
//! results is random.
//!
//! The month's service sends results when it likes. Here a test says when, and knows from the amount how each ends.

use anyhow::Result;
use fastrand::Rng;
use payments_machine::Time;
use payments_model::{Failure, Settlement};
use payments_queue::Queue;
use serde_json::{Value, json};

/// The result for a request: every fourth amount fails, and every odd one echoes its account and due time.
pub(crate) fn result_of(request: &Value) -> Value {
    let amount = request["amountMinor"].as_u64().unwrap_or(0);
    let mut result = if amount.is_multiple_of(4) {
        json!({
            "v": 1, "kind": "settlement", "paymentId": request["paymentId"],
            "status": "FAILED", "failureCode": "AM04", "failureReason": "no money",
        })
    } else {
        json!({
            "v": 1, "kind": "settlement", "paymentId": request["paymentId"],
            "status": "PROCESSED", "transactionId": format!("T-{amount}"),
        })
    };
    result["amountMinor"] = request["amountMinor"].clone();
    result["currency"] = request["currency"].clone();
    result["payeeAccountId"] = request["payeeAccountId"].clone();
    if amount % 2 == 1 {
        result["accountId"] = request["accountId"].clone();
        result["dueAt"] = request["dueAt"].clone();
    }
    result
}

/// How the payment of an amount ends.
pub(crate) fn settlement_of(amount: u64) -> Result<Settlement> {
    Ok(match result_of(&json!({ "amountMinor": amount })) {
        result if result["status"] == "FAILED" => Settlement::Failed(Failure::new(Some("AM04"), "no money")),
        _ => Settlement::Processed(format!("T-{amount}").parse()?),
    })
}

/// Receives all requests.
pub(crate) fn read_requests(requests: &Queue, time: &Time) -> Result<Vec<Value>> {
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

/// Sends the results of requests: each once and in order, or some twice and in a random order.
pub(crate) fn send_results(requests: &[Value], results: &Queue, time: &Time, random: Option<&mut Rng>) -> Result<()> {
    let mut sent: Vec<Value> = requests.iter().map(result_of).collect();
    if let Some(random) = random {
        let again: Vec<Value> = sent.iter().filter(|_| random.bool()).cloned().collect();
        sent.extend(again);
        random.shuffle(&mut sent);
    }
    for result in sent {
        results.send(result.to_string(), time.now())?;
    }
    Ok(())
}
