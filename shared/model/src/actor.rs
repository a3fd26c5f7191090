//! Who made a transition, as the trail names them.

use std::fmt;

/// The longest actor, in bytes: the trail has at most three entries and a head at most 1 KB.
pub const MAX_ACTOR_BYTES: usize = 40;

/// Who made a transition: a caller's identity or a function's name.
///
/// Always 1 to [`MAX_ACTOR_BYTES`] printable ASCII characters: identities come from tokens that
/// are not ours to refuse, so [`Actor::named`] bounds them instead of failing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor(String);

impl Actor {
    /// The actor called `name`, cut to [`MAX_ACTOR_BYTES`]; what is not printable ASCII becomes `?`.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let printable = |c: char| if matches!(c, ' '..='~') { c } else { '?' };
        let bounded: String = name.chars().take(MAX_ACTOR_BYTES).map(printable).collect();
        if bounded.is_empty() { Self("unknown".to_owned()) } else { Self(bounded) }
    }

    /// The actor as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_whatever_a_token_says() {
        assert_eq!(Actor::named("feed").as_str(), "feed");
        assert_eq!(Actor::named("").as_str(), "unknown");
        assert_eq!(Actor::named("a\nß").as_str(), "a??");
        assert_eq!(Actor::named(&"é".repeat(100)).as_str().len(), MAX_ACTOR_BYTES);
    }
}
