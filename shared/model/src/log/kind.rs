//! The kinds of events, by their types.

use crate::payment::transition::Status;

crate::kinds! {
    /// A kind of events.
    EventKind {
        /// A payment was created.
        Scheduled = "payment.scheduled",
        /// A payment was claimed.
        Pending = "payment.pending",
        /// A payment was made.
        Processed = "payment.processed",
        /// A payment failed.
        Failed = "payment.failed",
        /// A payment was cancelled.
        Cancelled = "payment.cancelled",
        /// A payment was amended.
        Amended = "payment.amended",
        /// A payment's version does not follow the one before.
        Irregular = "payment.irregular",
        /// A restore set a payment back to an earlier version.
        PaymentRestored = "payment.restored",
        /// Events may be missing.
        Gap = "log.gap",
        /// A restore began an epoch.
        LogRestored = "log.restored",
    }
}

impl EventKind {
    /// The kind of the events of payments that get a status.
    #[must_use]
    pub const fn from_status(status: Status) -> Self {
        match status {
            Status::Scheduled => Self::Scheduled,
            Status::Pending => Self::Pending,
            Status::Processed => Self::Processed,
            Status::Failed => Self::Failed,
            Status::Cancelled => Self::Cancelled,
        }
    }
}
