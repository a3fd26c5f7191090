//! The query parameters of the lists, and which list they describe.

use payments_http::query::invalid_parameter;
use payments_http::{Problem, Query};
use payments_model::TransactionId;

/// The parameter that names a transaction.
const TRANSACTION: &str = "transactionId";

/// The query parameters of the lists: `transactionId` stands alone, the others describe the list of a date.
pub const LIST_PARAMETERS: &[&str] = &[TRANSACTION, "dueDate", "status", "shard", "limit", "cursor"];

/// The transaction id that a query names, if any.
///
/// # Errors
/// [`payments_http::ProblemKind::InvalidParameter`] if the id is malformed, or another parameter stands beside it.
pub(crate) fn transaction(query: &Query<'_>) -> Result<Option<TransactionId>, Problem> {
    let Some(id) = query.get(TRANSACTION)? else { return Ok(None) };
    for &other in LIST_PARAMETERS.iter().filter(|name| **name != TRANSACTION) {
        if query.has(other) {
            return Err(invalid_parameter(other, &"it cannot stand beside \"transactionId\"; send one of them"));
        }
    }
    Ok(Some(id))
}
