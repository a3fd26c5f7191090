//! Orders of payments, and the settlement results of payments, as JSON.

use serde_json::{Value, json};

/// An order of 5 pence to `landlord` for a date or an instant.
pub fn order(scheduled_for: &str) -> Value {
    json!({ "payeeAccountId": "landlord", "amountMinor": 5, "currency": "GBP", "scheduledFor": scheduled_for })
}

/// An order with other values, or more of them.
pub fn order_with(scheduled_for: &str, changes: Value) -> Value {
    with(order(scheduled_for), changes)
}

/// An object with other values, or more of them.
pub fn with(mut object: Value, mut changes: Value) -> Value {
    for (name, value) in changes.as_object_mut().into_iter().flatten() {
        object[name] = value.take();
    }
    object
}

/// An order as an entry of a batch.
pub fn entry(account: &str, key: impl ToString, order: Value) -> Value {
    with(order, json!({ "accountId": account, "idempotencyKey": key.to_string() }))
}

/// A payment's settlement result, with more fields.
fn result(payment_id: &str, order: &Value, more: Value) -> Value {
    let mut result = json!({ "v": 1, "kind": "settlement", "paymentId": payment_id });
    for name in ["payeeAccountId", "amountMinor", "currency"] {
        result[name] = order[name].clone();
    }
    with(result, more)
}

/// The result of a payment that was processed in this transaction.
pub fn processed(payment_id: &str, order: &Value, transaction_id: &str) -> Value {
    result(payment_id, order, json!({ "status": "PROCESSED", "transactionId": transaction_id }))
}

/// The result of a payment that failed.
pub fn failed(payment_id: &str, order: &Value, code: &str, reason: &str) -> Value {
    result(payment_id, order, json!({ "status": "FAILED", "failureCode": code, "failureReason": reason }))
}
