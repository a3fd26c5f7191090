//! Why a message was not sent, classified once.

use std::error::Error;
use std::sync::Arc;

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

impl QueueError {
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
