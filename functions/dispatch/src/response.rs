//! The answer to a batch. It names the record to retry from, or fails so that Lambda isolates a poison record.
//!
//! *AWS Lambda Developer Guide*, "Configuring partial batch response with DynamoDB and Lambda": Lambda halves a batch "if
//! your invocation fails". A response that names a record splits the batch at that record. So a response that names the
//! first record does not split the batch.

use std::collections::HashMap;

use aws_lambda_events::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};

/// The records to be delivered again, by their sequence numbers.
pub(crate) type Retried = HashMap<String, Why>;

/// The reason why a record is delivered again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// The request was not sent. The next try may send the request.
    NotSent,
    /// No retry can process the record.
    Poison,
}

/// The first record of a batch is poison, and others follow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the stream record {0} cannot be dispatched, and others follow it; the invocation fails, so that Lambda halves the batch"
)]
pub(crate) struct PoisonFirst(String);

/// Returns the answer to a batch whose records have the sequence numbers `order`.
///
/// # Errors
/// [`PoisonFirst`] if the first record is poison and others follow.
pub(crate) fn response(order: &[String], retried: &Retried) -> Result<DynamoDbEventResponse, PoisonFirst> {
    let mut response = DynamoDbEventResponse::default();
    if let [first, _, ..] = order
        && retried.get(first) == Some(&Why::Poison)
    {
        return Err(PoisonFirst(first.clone()));
    }
    if let Some(first) = order.iter().find(|number| retried.contains_key(*number)) {
        let mut failure = DynamoDbBatchItemFailure::default();
        failure.item_identifier = Some(first.clone());
        response.batch_item_failures.push(failure);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_begins_with_poison_fails_unless_nothing_follows() {
        use Why::{NotSent, Poison};
        let failed = |number: &str| Err(PoisonFirst(number.to_owned()));
        for (order, retried, answer) in [
            (&["1", "2", "3"] as &[&str], &[] as &[(&str, Why)], Ok(None)),
            (&["1", "2", "3"], &[("3", Poison), ("2", NotSent)], Ok(Some("2"))),
            (&["1", "2", "3"], &[("2", Poison)], Ok(Some("2"))),
            (&["1", "2", "3"], &[("1", NotSent), ("2", Poison)], Ok(Some("1"))),
            (&["1", "2", "3"], &[("1", Poison)], failed("1")),
            (&["1", "2"], &[("1", Poison), ("2", Poison)], failed("1")),
            (&["1"], &[("1", Poison)], Ok(Some("1"))),
        ] {
            let order: Vec<String> = order.iter().map(|&number| number.to_owned()).collect();
            let retried = retried.iter().map(|&(number, why)| (number.to_owned(), why)).collect();
            let named = response(&order, &retried)
                .map(|it| it.batch_item_failures.first().and_then(|failure| failure.item_identifier.clone()));
            assert_eq!(named, answer.map(|named: Option<&str>| named.map(str::to_owned)), "{order:?}: {retried:?}");
        }
    }
}
