//! The actor of a transition, as clients see it.

use serde::Serialize;

use crate::{Actor, Status};

/// Who moved a payment into a status, as clients see it. Only a client has a name: which function it was is the bank's own
/// business.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PublicActor {
    /// The client or subject of a token.
    Client {
        /// Its name.
        name: String,
    },
    /// The bank, because the payment was due, or because its date was closed after it had been scheduled.
    Bank,
    /// The bank's transaction service.
    TransactionService,
}

impl PublicActor {
    /// Returns what clients see of the actor of a transition into a status, or of an amendment.
    #[must_use]
    pub fn of(status: Status, by: &Actor) -> Self {
        match status {
            Status::Scheduled if by.is_redate() => Self::Bank,
            Status::Scheduled | Status::Cancelled => Self::Client { name: by.to_string() },
            Status::Pending => Self::Bank,
            Status::Processed | Status::Failed => Self::TransactionService,
        }
    }
}
