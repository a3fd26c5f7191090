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
