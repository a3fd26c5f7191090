//! Checks that both sides of a pair make the same calls.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use payments_machine::payload::DataKind;
use payments_machine::{Call, CapacityUse, Fate, Recorder};
use serde_json::Value;

use crate::fixture::Fixture;
use crate::pair::{Pair, Side};

/// The fields that differ between payments. Only the names of their attributes are compared.
const OF_A_PAYMENT: [&str; 3] = ["Item", "Key", "ExpressionAttributeValues"];

/// Does work of this size on both sides, and compares the calls: how often each was made, all of its input except the
/// payments' own values, and the write units by table and index. Returns the number of calls.
pub async fn same_calls(pair: Pair, url: &str, data_kind: DataKind, size: u64) -> Result<usize> {
    let calls: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
    let take_calls = || std::mem::take(&mut *calls.lock().unwrap_or_else(PoisonError::into_inner));
    let recorder = Recorder::with_fate({
        let calls = Arc::clone(&calls);
        move |call| {
            let shape = (call.operation.clone(), shape(call));
            calls.lock().unwrap_or_else(PoisonError::into_inner).push(shape);
            Fate::Pass
        }
    });
    let fixture = Fixture::over(url, data_kind, Some(&recorder)).await?;
    pair.begin(&fixture).await?;
    let run = async |side| -> Result<(Vec<(String, Value)>, CapacityUse)> {
        let work = pair.prepare(&fixture, side, size).await?;
        drop((take_calls(), recorder.take_capacity_use()));
        work.await?;
        let (mut calls, mut capacity) = (take_calls(), recorder.take_capacity_use());
        calls.sort_by_key(|(operation, input)| format!("{operation} {input}"));
        capacity.retain(|(operation, _), _| operation != "Query");
        Ok((calls, capacity))
    };
    let (handler, against) = (run(Side::Handler).await?, run(Side::Against).await?);
    ensure!(handler.0.len() == against.0.len(), "{} and {} calls", handler.0.len(), against.0.len());
    for (ours, theirs) in handler.0.iter().zip(&against.0) {
        ensure!(ours == theirs, "the handler calls {ours:?}, the other side {theirs:?}");
    }
    ensure!(handler.1 == against.1, "the handler writes {:?}, the other side {:?}", handler.1, against.1);
    Ok(handler.0.len())
}

/// Returns a call's input without what differs between payments.
fn shape(call: &Call) -> Value {
    let mut input = call.input().clone();
    for name in OF_A_PAYMENT {
        if let Some(Value::Object(attributes)) = input.get_mut(name) {
            attributes.values_mut().for_each(|value| *value = Value::Null);
        }
    }
    input
}
