//! The roles of people at the provider of one machine.

use payments_http::Scope;
use payments_machine::environment::CONSOLE_CLIENT;

use crate::token::{CONSOLE_LIFETIME, Grant};

/// The role of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// An operator who sees everything and changes nothing.
    Look,
    /// Ana, an operator who may also act.
    Act,
    /// Ben, who may approve what Ana asked for.
    Approve,
    /// A customer, who is refused: nothing of the console is a customer's.
    Customer,
}

impl Role {
    /// Every role.
    pub(super) const ALL: [Self; 4] = [Self::Look, Self::Act, Self::Approve, Self::Customer];

    /// The role as the form names it.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Act => "act",
            Self::Approve => "approve",
            Self::Customer => "customer",
        }
    }

    /// Whether a client that asks for these scopes can have a person of this role.
    pub(super) fn is_asked_for(self, asked: &[Scope]) -> bool {
        match self {
            Self::Look => asked.contains(&Scope::Inspect),
            Self::Act => asked.contains(&Scope::Operate),
            Self::Approve => asked.contains(&Scope::Approve),
            Self::Customer => true,
        }
    }

    /// Returns the grant of a person of this role to a client that asks for these scopes.
    pub(super) fn grant(self, asked: &[Scope]) -> Grant {
        let (own, subject, accounts): (&[Scope], _, _) = match self {
            Self::Look => (&[Scope::Inspect], "operator@example.com", vec![]),
            // A mail address names nobody for good.
            Self::Act => (&[Scope::Inspect, Scope::Operate], "ana", vec![]),
            Self::Approve => (&[Scope::Inspect, Scope::Approve], "ben", vec![]),
            // Asked for or not, so that what it leads to can be seen.
            Self::Customer => (&[Scope::Read], "customer@example.com", vec!["acc-1".to_owned()]),
        };
        let granted = own.iter().filter(|scope| self == Self::Customer || asked.contains(scope));
        let scopes = granted.map(|scope| scope.as_str()).collect::<Vec<_>>().join(" ");
        Grant { client: CONSOLE_CLIENT, subject, scopes, accounts, lifetime: CONSOLE_LIFETIME }
    }
}
