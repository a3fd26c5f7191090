//! What can go wrong with a call to DynamoDB, classified once.

use std::error::Error;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
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
