//! The actor of a change, as clients see it.

use std::str::FromStr;

use serde::Serialize;

use crate::actor::ActorError;
use crate::actor::{Actor, ActorKind};

/// The actor of a change, as clients see it. Only a client and its file have a name: the names of
/// the bank's runs and operators are internal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PublicActor {
    /// The client or subject of a token.
    Client {
        /// Its name.
        name: String,
    },
    /// The bank, because the payment was due, because its date was closed after it had been scheduled, or because it was undone.
    Bank,
    /// An operator of the bank.
    Operator,
    /// The bank's transaction service.
    TransactionService,
    /// A file of a client.
    File {
        /// Its name.
        name: String,
    },
}

impl From<&Actor> for PublicActor {
    fn from(actor: &Actor) -> Self {
        let name = || actor.name().to_owned();
        match actor.kind() {
            ActorKind::Client => Self::Client { name: name() },
            ActorKind::Bank => Self::Bank,
            ActorKind::Operator => Self::Operator,
            ActorKind::TransactionService => Self::TransactionService,
            ActorKind::File => Self::File { name: name() },
        }
    }
}

/// Reads `client:landlord-app`, `file:…`, or the kind alone of those without a name.
impl FromStr for PublicActor {
    type Err = ActorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = |name: &str| if name.is_empty() { Err(ActorError) } else { Ok(name.to_owned()) };
        match text.split_once(':') {
            Some(("client", client)) => Ok(Self::Client { name: name(client)? }),
            Some(("file", file)) => Ok(Self::File { name: name(file)? }),
            None if text == "bank" => Ok(Self::Bank),
            None if text == "operator" => Ok(Self::Operator),
            None if text == "transaction-service" => Ok(Self::TransactionService),
            _ => Err(ActorError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_see_follows_from_what_is_stored() {
        for (stored, text, json) in [
            ("c:landlord-app", "client:landlord-app", r#"{"kind":"client","name":"landlord-app"}"#),
            ("b:sweep", "bank", r#"{"kind":"bank"}"#),
            ("b:redate", "bank", r#"{"kind":"bank"}"#),
            ("b:undo/0123456789abcdef", "bank", r#"{"kind":"bank"}"#),
            ("o:ada", "operator", r#"{"kind":"operator"}"#),
            ("t:settlement", "transaction-service", r#"{"kind":"transaction-service"}"#),
            ("f:2026-11.xml", "file:2026-11.xml", r#"{"kind":"file","name":"2026-11.xml"}"#),
        ] {
            let actor = PublicActor::from(&stored.parse::<Actor>().unwrap());
            assert_eq!((serde_json::to_string(&actor).unwrap(), text.parse()), (json.to_owned(), Ok(actor)));
        }
        for text in ["", "ada", "client:", "bank:sweep"] {
            assert_eq!(text.parse::<PublicActor>(), Err(ActorError), "{text}");
        }
    }
}
