//! What can go wrong with a call to DynamoDB, classified once.

use std::error::Error;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use payments_model::{Outage, OutageKind};

/// A failed call, after the SDK's own retries.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// DynamoDB asks for less at once, or another transaction holds the item just now.
    #[error("DynamoDB throttled {operation}")]
    Throttled {
        /// The operation's name.
        operation: &'static str,
        /// What the SDK says.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// No answer, an answer that cannot be read, or a 5xx. Whether the call took effect is unknown.
    #[error("DynamoDB did not answer {operation}")]
    Unavailable {
        /// The operation's name.
        operation: &'static str,
        /// What the SDK says.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// DynamoDB refused the call: a missing table or permission, or a fault of ours.
    #[error("DynamoDB refused {operation}")]
    Refused {
        /// The operation's name.
        operation: &'static str,
        /// What the SDK says.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A stored item contradicts itself or the model.
    #[error("the item {key} cannot be read: {why}")]
    Unreadable {
        /// The item's key, partition and sort.
        key: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Outage for StoreError {
    fn kind(&self) -> OutageKind {
        match self {
            Self::Throttled { .. } => OutageKind::Throttled,
            Self::Unavailable { .. } => OutageKind::Unavailable,
            Self::Refused { .. } | Self::Unreadable { .. } => OutageKind::Broken,
        }
    }
}

/// The codes that mean "the same call succeeds later".
const THROTTLES: [&str; 8] = [
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "Throttling",
    "RequestLimitExceeded",
    "TransactionConflictException",
    "TransactionInProgressException",
    "LimitExceededException",
    "ReplicatedWriteConflictException",
];

/// The codes that mean "DynamoDB itself is in trouble".
const TROUBLES: [&str; 3] = ["InternalServerError", "ServiceUnavailable", "InternalFailure"];

/// Why DynamoDB cancelled a transaction, where that is no fault.
pub(crate) enum Cancelled {
    /// A condition does not hold.
    ConditionFailed,
    /// Another write was at one of the items, or a key was throttled: the same succeeds later.
    InConflict,
}

/// Why a transaction was cancelled, if it was and that is no fault. A condition that does not hold
/// counts for more than a conflict, since repeating does not change it.
pub(crate) fn cancelled(error: &SdkError<TransactWriteItemsError>) -> Option<Cancelled> {
    let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = error.as_service_error() else {
        return None;
    };
    let given = |codes: &[&str]| {
        cancelled.cancellation_reasons().iter().filter_map(|reason| reason.code()).any(|code| codes.contains(&code))
    };
    if given(&["ConditionalCheckFailed"]) {
        Some(Cancelled::ConditionFailed)
    } else if given(&["ValidationError", "ItemCollectionSizeLimitExceeded"]) {
        None
    } else if given(&["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"]) {
        Some(Cancelled::InConflict)
    } else {
        None
    }
}

/// Classifies a failed `operation`.
pub(crate) fn failed<E>(operation: &'static str) -> impl FnOnce(SdkError<E>) -> StoreError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    move |error| {
        let status = error.raw_response().map(|response| response.status().as_u16());
        let code = error.as_service_error().and_then(ProvideErrorMetadata::code).map(str::to_owned);
        let code = code.as_deref();
        let server_side = status.is_some_and(|status| status >= 500);
        // A 200 that cannot be read is an answer to the SDK, but tells nothing about the call.
        let refused = matches!(error, SdkError::ServiceError(_)) && status.is_some_and(|status| status >= 400);
        let answered = refused || matches!(error, SdkError::ConstructionFailure(_));
        let source = Box::new(error);
        if code.is_some_and(|code| THROTTLES.contains(&code)) || status == Some(429) {
            StoreError::Throttled { operation, source }
        } else if !answered || server_side || code.is_some_and(|code| TROUBLES.contains(&code)) {
            StoreError::Unavailable { operation, source }
        } else {
            StoreError::Refused { operation, source }
        }
    }
}
