//! The actor of a transition, as the trail names it, and as clients see it.

use serde::Serialize;

use crate::Status;

/// The longest actor, in bytes. It keeps a head with three trail entries within 1 KB.
pub const MAX_ACTOR_BYTES: usize = 40;

/// The actor of a transition: a caller's identity or a function's name.
///
/// Always 1 to [`MAX_ACTOR_BYTES`] printable ASCII characters. [`Actor::named`] shortens identities
/// instead of rejecting them, because the tokens they come from are valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor(String);

as_text!(Actor);

impl Actor {
    /// Creates the actor called `name`, cut to [`MAX_ACTOR_BYTES`]. A character that is not printable
    /// ASCII becomes `?`.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let printable = |c: char| if matches!(c, ' '..='~') { c } else { '?' };
        let bounded: String = name.chars().take(MAX_ACTOR_BYTES).map(printable).collect();
        if bounded.is_empty() { Self("unknown".to_owned()) } else { Self(bounded) }
    }
}

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
    /// The bank, because the payment was due.
    Bank,
    /// The bank's transaction service.
    TransactionService,
}

impl PublicActor {
    /// Returns what clients see of the actor of a transition into a status.
    #[must_use]
    pub fn of(status: Status, by: &Actor) -> Self {
        match status {
            Status::Scheduled | Status::Cancelled => Self::Client { name: by.to_string() },
            Status::Pending => Self::Bank,
            Status::Processed | Status::Failed => Self::TransactionService,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_identity_becomes_a_short_printable_actor() {
        assert_eq!(Actor::named("feed").as_str(), "feed");
        assert_eq!(Actor::named("").as_str(), "unknown");
        assert_eq!(Actor::named("a\nß").as_str(), "a??");
        assert_eq!(Actor::named(&"é".repeat(100)).as_str().len(), MAX_ACTOR_BYTES);
    }
}
