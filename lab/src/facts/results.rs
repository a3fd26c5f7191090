//! Settlement results as the transaction service may send them, right or wrong.

use payments_model::Settlement;
use serde_json::{Value, json};

/// Returns the result of a request, or of what else names a payment and its transfer, with this outcome.
#[must_use]
pub fn result(request: &Value, mut outcome: Value) -> Value {
    (outcome["v"], outcome["kind"]) = (json!(1), json!("settlement"));
    for name in ["paymentId", "amountMinor", "currency", "payeeAccountId"] {
        outcome[name] = request[name].clone();
    }
    outcome
}

/// Returns the result that money moved.
#[must_use]
pub fn processed(request: &Value, transaction: &str) -> Value {
    result(request, json!({ "status": "PROCESSED", "transactionId": transaction }))
}

/// Returns the result that no money moved, for a reason without a code.
#[must_use]
pub fn failed(request: &Value, reason: &str) -> Value {
    result(request, json!({ "status": "FAILED", "failureReason": reason }))
}

/// Returns the result of a settlement.
#[must_use]
pub fn from_settlement(request: &Value, settlement: &Settlement) -> Value {
    match settlement {
        Settlement::Processed(transaction) => processed(request, transaction.as_str()),
        Settlement::Failed(failure) => result(
            request,
            json!({ "status": "FAILED", "failureCode": failure.code().as_str(), "failureReason": failure.reason() }),
        ),
    }
}
