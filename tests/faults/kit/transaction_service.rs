//! The tests' transaction service: its result depends on the payment alone; how often and in which order it sends
//! results is random.
//!
//! The month's service sends results when it likes. Here a test says when, and knows from the amount how each ends.

use anyhow::Result;
use fastrand::Rng;
use payments_lab::facts::results::{failed, from_settlement};
use payments_machine::Time;
use payments_model::{Failure, Settlement};
use payments_queue::Queue;
use serde_json::{Value, json};

/// The result for a request: every fourth amount fails, and every odd one echoes its account and due time.
pub(crate) fn result_of(request: &Value) -> Value {
    let amount = request["amountMinor"].as_u64().unwrap_or(0);
    let mut result = match settlement_of(amount) {
        Ok(settlement) => from_settlement(request, &settlement),
        Err(error) => failed(request, &format!("{error:#}")),
    };
    if amount % 2 == 1 {
        result["accountId"] = request["accountId"].clone();
        result["dueAt"] = request["dueAt"].clone();
    }
    result
}

/// The settlement of a payment of this amount.
pub(crate) fn settlement_of(amount: u64) -> Result<Settlement> {
    if amount.is_multiple_of(4) {
        return Ok(Settlement::Failed(Failure::new(Some("AM04"), "no money")));
    }
    Ok(Settlement::Processed(format!("T-{amount}").parse()?))
}

/// The event of results that are delivered together.
pub(crate) fn batch_of(results: &[Value]) -> Value {
    let message =
        |(place, result): (usize, &Value)| json!({ "messageId": place.to_string(), "body": result.to_string() });
    json!({ "Records": results.iter().enumerate().map(message).collect::<Vec<_>>() })
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
