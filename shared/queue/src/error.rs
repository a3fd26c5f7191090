//! Messages that were not sent, classified once.

use std::error::Error;
use std::sync::Arc;

use payments_model::{Outage, OutageKind};

use crate::in_process::SendError;

/// The cause, shared because one failed call fails up to ten messages.
type Cause = Arc<dyn Error + Send + Sync>;

/// A message that was not sent, after the SDK's own retries.
#[derive(Debug, Clone, thiserror::Error)]
pub enum QueueError {
    /// SQS throttles the call.
    #[error("SQS throttled the message")]
    Throttled(#[source] Cause),
    /// No reply, an unreadable reply, or a fault of SQS. The message may have been sent; the receiver deduplicates.
    #[error("SQS did not confirm the message")]
    Unavailable(#[source] Cause),
    /// SQS rejected the message or the call: a missing queue or permission, or a fault of ours.
    #[error("SQS rejected the message")]
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
    /// Returns the error of a message that cannot be encoded as JSON.
    pub fn unwritable(error: serde_json::Error) -> Self {
        Self::Refused(Arc::new(error))
    }
}

impl From<SendError> for QueueError {
    fn from(error: SendError) -> Self {
        Self::Refused(Arc::new(error))
    }
}
