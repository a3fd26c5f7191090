//! The actor of a change, as items store it: its kind and its name.

use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// The longest actor, in bytes: its kind, a colon and its name. It keeps a head with three trail entries within 1 KB.
pub const MAX_ACTOR_BYTES: usize = KIND_BYTES + MAX_NAME_BYTES;

/// A letter and a colon.
const KIND_BYTES: usize = 2;

/// The longest name, in bytes: a UUID has 36.
const MAX_NAME_BYTES: usize = 38;

/// The characters that a shortened name keeps. With [`MARK`] and the digits of its hash it has at most 37 bytes.
const KEPT_CHARACTERS: usize = 24;

/// The character between the kept characters and the hash of a shortened name.
const MARK: char = '~';

/// The bytes of a hash that a shortened name has, each as two hexadecimal digits. An attacker who wants the actor of a
/// certain client needs 2^48 names; among a million clients, two have the same hash with a probability of 1 in 500.
const HASH_BYTES: usize = 6;

/// The kind of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActorKind {
    /// A client of the API.
    Client,
    /// The bank, by one of its own runs.
    Bank,
    /// An operator of the bank.
    Operator,
    /// The bank's transaction service.
    TransactionService,
    /// A file of a client.
    File,
}

impl ActorKind {
    const ALL: [Self; 5] = [Self::Client, Self::Bank, Self::Operator, Self::TransactionService, Self::File];

    /// The kind's letter in a stored actor.
    const fn letter(self) -> char {
        match self {
            Self::Client => 'c',
            Self::Bank => 'b',
            Self::Operator => 'o',
            Self::TransactionService => 't',
            Self::File => 'f',
        }
    }
}

/// The actor of a change: `c:landlord-app`, `b:sweep`.
///
/// Its name has 1 to 38 printable ASCII characters. Names of clients and operators are shortened
/// instead of rejected, because their tokens are valid. Different names stay different.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor(String);

/// The text is not an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an actor is c:, b:, o:, t: or f:, and a name of 1 to {MAX_NAME_BYTES} printable ASCII characters")]
pub struct ActorError;

as_text!(Actor);

/// The bank's run that claims payments.
const SWEEP: &str = "b:sweep";

/// The bank's run that moves payments of a date that was closed later.
const REDATE: &str = "b:redate";

/// The only name of the transaction service.
const SETTLEMENT: &str = "t:settlement";

impl Actor {
    /// Creates the actor of the client of this name.
    #[must_use]
    pub fn client(name: &str) -> Self {
        Self::new(ActorKind::Client, name)
    }

    /// Creates the actor of the operator of this name.
    #[must_use]
    pub fn operator(name: &str) -> Self {
        Self::new(ActorKind::Operator, name)
    }

    /// The actor of claims.
    #[must_use]
    pub fn sweep() -> Self {
        Self(SWEEP.to_owned())
    }

    /// The actor of the bank's own amendments, which move payments of a date that was closed later.
    #[must_use]
    pub fn redate() -> Self {
        Self(REDATE.to_owned())
    }

    /// The actor of settlements.
    #[must_use]
    pub fn transaction_service() -> Self {
        Self(SETTLEMENT.to_owned())
    }

    /// Whether this is the actor of the bank's own amendments.
    #[must_use]
    pub fn is_redate(&self) -> bool {
        self.0 == REDATE
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> ActorKind {
        let is = |kind: &ActorKind| self.0.starts_with(kind.letter());
        ActorKind::ALL.into_iter().find(is).unwrap_or(ActorKind::Client)
    }

    /// The name, as it is stored.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0[KIND_BYTES..]
    }

    pub(crate) fn new(kind: ActorKind, name: &str) -> Self {
        Self(format!("{}:{}", kind.letter(), stored_name(name)))
    }
}

impl FromStr for Actor {
    type Err = ActorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) = text.split_once(':').ok_or(ActorError)?;
        let is_kind = ActorKind::ALL.iter().any(|known| kind.chars().eq([known.letter()]));
        if is_kind && is_stored_name(name) { Ok(Self(text.to_owned())) } else { Err(ActorError) }
    }
}

/// Returns a name as it is stored: unchanged if it fits and does not look shortened, else a shortened one. A character
/// that is not printable ASCII becomes `?` there. A token without a name is `unknown`.
fn stored_name(name: &str) -> String {
    if name.is_empty() {
        return "unknown".to_owned();
    }
    if is_stored_name(name) && !looks_shortened(name) {
        return name.to_owned();
    }
    let printable = |c: char| if matches!(c, ' '..='~') { c } else { '?' };
    let kept: String = name.chars().take(KEPT_CHARACTERS).map(printable).collect();
    let hash: String = Sha256::digest(name).iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect();
    format!("{kept}{MARK}{hash}")
}

fn is_stored_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn looks_shortened(name: &str) -> bool {
    let hash = name.rsplit_once(MARK).map(|(_, hash)| hash);
    hash.is_some_and(|hash| hash.len() == 2 * HASH_BYTES && hash.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_is_its_kind_and_its_name() {
        for (actor, text) in [
            (Actor::client("feed"), "c:feed"),
            (Actor::client(""), "c:unknown"),
            (Actor::client(&"a".repeat(38)), &*format!("c:{}", "a".repeat(38))),
            (Actor::client("redate"), "c:redate"),
            (Actor::operator("ada"), "o:ada"),
            (Actor::sweep(), "b:sweep"),
            (Actor::redate(), "b:redate"),
            (Actor::transaction_service(), "t:settlement"),
        ] {
            assert_eq!((actor.as_str(), text.parse()), (text, Ok(actor.clone())));
            assert!(text.len() <= MAX_ACTOR_BYTES && text.ends_with(actor.name()));
        }
        assert_eq!("f:2026-11.xml".parse::<Actor>().map(|actor| actor.kind()), Ok(ActorKind::File));
        assert!(Actor::redate().is_redate() && !Actor::client("redate").is_redate());
    }

    #[test]
    fn no_two_names_become_one() {
        let long = |end: &str| format!("{}{end}", "gateway-of-the-northern-branch-");
        let names = [long("payments"), long("payrolls"), "a\nß".to_owned(), "a\nä".to_owned(), "a??".to_owned()];
        let mut actors: Vec<_> = names.iter().map(|name| Actor::client(name)).collect();
        assert_eq!(actors[0].as_str(), "c:gateway-of-the-northern-~fb78a5328bba");
        assert!(actors[2].as_str().starts_with("c:a??~"), "{}", actors[2]);
        // A client whose name equals another client's stored name is shortened, too.
        actors.push(Actor::client(actors[0].name()));
        actors.push(Actor::client(&"é".repeat(100)));
        for (n, actor) in actors.iter().enumerate() {
            assert!(!actors[..n].contains(actor), "{actor}");
            assert_eq!((actor.as_str().len() <= MAX_ACTOR_BYTES, actor.as_str().parse()), (true, Ok(actor.clone())));
        }
    }

    #[test]
    fn a_text_without_a_kind_is_not_an_actor() {
        for text in ["", "feed", "c:", "x:feed", "cc:feed", ":feed", "c:a\n", "c:ß", &format!("c:{}", "a".repeat(39))]
        {
            assert_eq!(text.parse::<Actor>(), Err(ActorError), "{text:?}");
        }
    }
}
