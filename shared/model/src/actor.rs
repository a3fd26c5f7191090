//! The actor of a transition, as the trail names it.

/// The longest actor, in bytes. It keeps a head with three trail entries within 1 KB.
pub const MAX_ACTOR_BYTES: usize = 40;

/// The actor of a transition: a caller's identity or a function's name.
///
/// Always 1 to [`MAX_ACTOR_BYTES`] printable ASCII characters. [`Actor::named`] shortens identities
/// instead of rejecting them, because the tokens they come from are valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor(String);

as_text!(Actor);

/// The name of the bank's own amendments. No client has it: see [`Actor::of_client`].
const REDATE: &str = "redate";

impl Actor {
    /// The actor of the bank's own amendments, which move payments of a date that was closed later.
    #[must_use]
    pub fn redate() -> Self {
        Self(REDATE.to_owned())
    }

    /// Whether this is the actor of the bank's own amendments.
    #[must_use]
    pub fn is_redate(&self) -> bool {
        self.0 == REDATE
    }

    /// Creates the actor of a client called `name`, as [`Actor::named`] does. A client that is called as the bank's own actor gets a `?`
    /// behind its name.
    #[must_use]
    pub fn of_client(name: &str) -> Self {
        let actor = Self::named(name);
        if actor.is_redate() { Self(format!("{name}?")) } else { actor }
    }

    /// Creates the actor called `name`, cut to [`MAX_ACTOR_BYTES`]. A character that is not printable
    /// ASCII becomes `?`.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let printable = |c: char| if matches!(c, ' '..='~') { c } else { '?' };
        let bounded: String = name.chars().take(MAX_ACTOR_BYTES).map(printable).collect();
        if bounded.is_empty() { Self("unknown".to_owned()) } else { Self(bounded) }
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

    #[test]
    fn no_client_is_the_banks_own_actor() {
        assert!(Actor::redate().is_redate() && Actor::named("redate").is_redate());
        assert_eq!(Actor::of_client("redate").as_str(), "redate?");
        assert_eq!(Actor::of_client("feed"), Actor::named("feed"));
    }
}
