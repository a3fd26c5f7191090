//! The law of one settlement: a payment ends as the transaction service said, and this end is for good.

use payments_model::Settlement;
use serde_json::Value;

use crate::facts::heads::is_settled;
use payments_machine::layers::attributes::text;

/// Checks that a head is settled or cancelled. Returns the violation, if there is one.
#[must_use]
pub fn check_over(head: &Value) -> Option<String> {
    let status = text(head, "status");
    (!is_settled(status) && status != "CANCELLED").then(|| format!("is {status} when everything is over"))
}

/// Checks that a settled head has the settlement that the transaction service `said`: the transaction's id, or the code and
/// the reason. Returns the violation, if there is one.
#[must_use]
pub fn check_settlement(head: &Value, said: &Settlement, is_contested: bool) -> Option<String> {
    let is = ["status", "transactionId", "failureCode", "failureReason"].map(|name| text(head, name));
    let said = match said {
        Settlement::Processed(id) => ["PROCESSED", id.as_str(), "", ""],
        Settlement::Failed(failure) => ["FAILED", "", failure.code().as_str(), failure.reason()],
    };
    let wrong = is_settled(is[0]) && is != said && !is_contested;
    wrong.then(|| format!("is {is:?}, but the service said {said:?}"))
}
