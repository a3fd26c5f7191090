//! Whether both sides of a pair make the same calls.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use payments_local::Recorder;
use payments_local::{Call, CapacityUse, Fate};
use serde_json::Value;

use crate::bank::Bank;
use crate::{Pair, Side};

/// What differs from payment to payment; of these, only the names of the attributes are compared.
const OF_A_PAYMENT: [&str; 3] = ["Item", "Key", "ExpressionAttributeValues"];

/// What one side did: its calls, and the write units they took.
type Done = (Vec<(String, Value)>, CapacityUse);

/// Does so much of a pair's work on both sides, and compares the calls and what they wrote: how often each was
/// made, with all that is said in it but the payments' own values, and the units by table and index. Returns how
/// many there were.
///
/// # Errors
/// Where they differ.
pub async fn same_calls(pair: Pair, url: &str, size: u64) -> Result<usize> {
    let calls: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
    let wire = Recorder::with_fate({
        let calls = calls.clone();
        move |call| {
            let shape = (call.operation.clone(), shape(call));
            calls.lock().unwrap_or_else(PoisonError::into_inner).push(shape);
            Fate::Pass
        }
    });
    let bank = Bank::over(url, Some(&wire)).await?;
    pair.begin(&bank).await?;
    let done = async |side| -> Result<Done> {
        let work = pair.prepare(&bank, side, size).await?;
        calls.lock().unwrap_or_else(PoisonError::into_inner).clear();
        drop(wire.take_capacity_use());
        work.await?;
        let mut calls = std::mem::take(&mut *calls.lock().unwrap_or_else(PoisonError::into_inner));
        calls.sort_by_key(|(operation, input)| format!("{operation} {input}"));
        let mut ledger = wire.take_capacity_use();
        ledger.retain(|(operation, _), _| operation != "Query");
        Ok((calls, ledger))
    };
    let (handler, against) = (done(Side::Handler).await?, done(Side::Against).await?);
    ensure!(handler.0.len() == against.0.len(), "{} and {} calls", handler.0.len(), against.0.len());
    for (ours, theirs) in handler.0.iter().zip(&against.0) {
        ensure!(ours == theirs, "the handler calls {ours:?}, the other side {theirs:?}");
    }
    ensure!(handler.1 == against.1, "the handler writes {:?}, the other side {:?}", handler.1, against.1);
    Ok(handler.0.len())
}

/// A call's input without what differs from payment to payment.
fn shape(call: &Call) -> Value {
    let mut input = call.input().clone();
    for name in OF_A_PAYMENT {
        if let Some(Value::Object(attributes)) = input.get_mut(name) {
            attributes.values_mut().for_each(|value| *value = Value::Null);
        }
    }
    input
}
