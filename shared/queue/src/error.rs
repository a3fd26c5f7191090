//! Why a message was not sent, classified once.

use std::error::Error;
use std::sync::Arc;

use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::BatchResultErrorEntry;
use payments_model::{Outage, OutageKind};

use crate::in_process::SendError;

/// What the other side said. Shared, because one failed call fails up to ten messages.
type Cause = Arc<dyn Error + Send + Sync>;

/// A message that was not accepted, after the SDK's own retries.
#[derive(Debug, Clone, thiserror::Error)]
pub enum QueueError {
    /// SQS asks for less at once.
    #[error("SQS throttled the message")]
    Throttled(#[source] Cause),
    /// No answer, an answer that cannot be read, or a fault on SQS's side. Whether the message was
    /// taken is unknown: the receiver deduplicates.
    #[error("SQS did not take the message")]
    Unavailable(#[source] Cause),
    /// SQS refuses the message or the call: a missing queue or permission, or a fault of ours.
    #[error("SQS refused the message")]
    Refused(#[source] Cause),
}

impl Outage for QueueError {
    fn kind(&self) -> OutageKind {
        match self {
            Self::Throttled(_) => OutageKind::Throttled,
            Self::Unavailable(_) => OutageKind::Unavailable,
            Self::Refused(_) => OutageKind::Broken,
        }
    }
}

/// What SQS says of one entry of a batch.
#[derive(Debug, thiserror::Error)]
#[error("{code}: {message}")]
struct Entry {
    code: String,
    message: String,
}

/// SQS answered the batch and named this entry neither as sent nor as failed.
#[derive(Debug, thiserror::Error)]
#[error("the reply does not mention the message")]
struct Unmentioned;

/// The codes that mean "the same call succeeds later".
const THROTTLES: [&str; 5] = ["RequestThrottled", "ThrottlingException", "Throttling", "OverLimit", "KmsThrottled"];

/// A fault of SQS's own, whichever protocol spelt it.
const TROUBLES: [&str; 4] = ["InternalError", "InternalFailure", "ServiceUnavailable", "InternalServerError"];

impl QueueError {
    /// The whole call failed.
    pub(crate) fn of_call<E>(error: SdkError<E>) -> Self
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        let status = error.raw_response().map(|response| response.status().as_u16());
        let code = error.as_service_error().and_then(ProvideErrorMetadata::code).map(str::to_owned);
        // A reply that cannot be read is a service error too, with the status of a success.
        let ours = matches!(error, SdkError::ConstructionFailure(_))
            || (matches!(error, SdkError::ServiceError(_))
                && status.is_some_and(|status| (400..500).contains(&status)));
        let cause = Arc::new(error);
        match code.as_deref().map(bare) {
            Some(code) if THROTTLES.contains(&code) => Self::Throttled(cause),
            _ if status == Some(429) => Self::Throttled(cause),
            Some(code) if TROUBLES.contains(&code) => Self::Unavailable(cause),
            _ if ours => Self::Refused(cause),
            _ => Self::Unavailable(cause),
        }
    }

    /// The call succeeded and this entry of it did not.
    pub(crate) fn of_entry(entry: &BatchResultErrorEntry) -> Self {
        let cause = Arc::new(Entry { code: entry.code.clone(), message: entry.message.clone().unwrap_or_default() });
        if THROTTLES.contains(&bare(&entry.code)) {
            Self::Throttled(cause)
        } else if entry.sender_fault {
            Self::Refused(cause)
        } else {
            Self::Unavailable(cause)
        }
    }

    /// The call succeeded and its reply is silent about this entry.
    pub(crate) fn unmentioned() -> Self {
        Self::Unavailable(Arc::new(Unmentioned))
    }

    /// The message cannot be written as JSON.
    pub(crate) fn unwritable(error: serde_json::Error) -> Self {
        Self::Refused(Arc::new(error))
    }
}

impl From<SendError> for QueueError {
    fn from(error: SendError) -> Self {
        Self::Refused(Arc::new(error))
    }
}

/// A code without the namespace that the query protocol puts before it
/// (`AWS.SimpleQueueService.RequestThrottled`).
fn bare(code: &str) -> &str {
    code.rsplit(['.', '#']).next().unwrap_or(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_sorted_by_what_a_caller_can_do() {
        for (code, sender_fault, want) in [
            ("InternalError", false, OutageKind::Unavailable),
            ("AWS.SimpleQueueService.RequestThrottled", true, OutageKind::Throttled),
            ("KmsThrottled", true, OutageKind::Throttled),
            ("InvalidMessageContents", true, OutageKind::Broken),
        ] {
            let entry = BatchResultErrorEntry::builder().id("0").code(code).sender_fault(sender_fault).build().unwrap();
            let error = QueueError::of_entry(&entry);
            assert_eq!(error.kind(), want, "{code}");
            assert_eq!(error.source().unwrap().to_string(), format!("{code}: "));
        }
    }
}
