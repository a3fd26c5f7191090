//! Failed calls to DynamoDB, classified once.

use std::error::Error;
use std::sync::Arc;

use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata, SdkError};
use payments_model::{Outage, OutageKind};

/// A failed call, after the SDK's own retries.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// DynamoDB throttles the call, or another transaction holds the item.
    #[error("DynamoDB throttled {operation}")]
    Throttled {
        /// The operation's name.
        operation: &'static str,
        /// The SDK's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// No reply, an unreadable reply, or a 5xx. The call may have taken effect.
    #[error("DynamoDB did not answer {operation}")]
    Unavailable {
        /// The operation's name.
        operation: &'static str,
        /// The SDK's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// DynamoDB rejected the call: a missing table or permission, or a fault of ours.
    #[error("DynamoDB rejected {operation}")]
    Refused {
        /// The operation's name.
        operation: &'static str,
        /// The SDK's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A stored item contradicts itself or the model.
    #[error("the item {key} of table {table} cannot be read: {why}")]
    Unreadable {
        /// The table that holds it.
        table: String,
        /// The item's key, partition and sort.
        key: String,
        /// The fault of the item.
        why: String,
    },
}

impl StoreError {
    /// Returns the error that decides the next step: an error that a retry does not change.
    #[must_use]
    pub fn worse(known: Option<Self>, new: Self) -> Self {
        known.filter(|known| known.kind() == OutageKind::Broken).unwrap_or(new)
    }

    /// A reply that came too late to be used.
    #[must_use]
    pub fn late(operation: &'static str) -> Self {
        Self::Unavailable { operation, source: "the reply came too late".into() }
    }

    /// The same error for another caller.
    #[must_use]
    pub fn shared(error: &Arc<Self>) -> Self {
        let source = Box::new(Arc::clone(error));
        match &**error {
            Self::Throttled { operation, .. } => Self::Throttled { operation, source },
            Self::Unavailable { operation, .. } => Self::Unavailable { operation, source },
            Self::Refused { operation, .. } => Self::Refused { operation, source },
            Self::Unreadable { table, key, why } => Self::unreadable(table, key.as_str(), why),
        }
    }

    /// An item that cannot be read. Its table and its key are needed to find it.
    pub(crate) fn unreadable(table: &str, key: impl Into<String>, why: impl ToString) -> Self {
        Self::Unreadable { table: table.to_owned(), key: key.into(), why: why.to_string() }
    }
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

/// Error codes of calls that succeed later.
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

/// Error codes of DynamoDB's own failures.
const TROUBLES: [&str; 3] = ["InternalServerError", "ServiceUnavailable", "InternalFailure"];

/// A request that lacks a required part: a fault of ours.
pub(crate) fn incomplete(operation: &'static str) -> impl FnOnce(BuildError) -> StoreError {
    move |error| StoreError::Refused { operation, source: Box::new(error) }
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
        // To the SDK an unreadable 200 is a reply, but it says nothing about the call.
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
