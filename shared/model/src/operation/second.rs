//! Four eyes: the person of a token, the hash of a plan that two persons see, and the ticket of a run without them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};
use sha2::{Digest as _, Sha256};

use super::action::ActionName;

/// The most payments, or dead letters, that one person moves with one action.
pub const ALONE: u64 = 100;

/// The longest name of a person, in bytes: as long as a `sub` of OpenID Connect may be.
const MAX_PERSON_BYTES: usize = 255;

/// The longest ticket, in bytes.
const MAX_TICKET_BYTES: usize = 100;

/// The digits of a hash.
const HASH_DIGITS: usize = 64;

/// A person, as the claim of the bank's provider spells it. Two persons are the same if each byte is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person(String);

/// A claim that names no person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it has to be 1 to {MAX_PERSON_BYTES} characters of visible ASCII, one text, and no mail address: an address has several spellings, and others get it later"
)]
pub struct PersonError;

impl FromStr for Person {
    type Err = PersonError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // API Gateway passes an array as its elements in brackets, so one person could have two spellings.
        let is_plain =
            text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'@') && !text.starts_with(['[', '{']);
        let is_one = (1..=MAX_PERSON_BYTES).contains(&text.len()) && is_plain;
        if is_one { Ok(Self(text.to_owned())) } else { Err(PersonError) }
    }
}

/// The claims of tokens that do not name a person for good: of one token or session, of a client, of an address, or of what it may do.
/// `template.yaml` refuses the same.
const NOT_PERSONS: [&str; 26] = [
    "acr",
    "amr",
    "at_hash",
    "aud",
    "auth_time",
    "azp",
    "cid",
    "client_id",
    "email",
    "event_id",
    "exp",
    "iat",
    "iss",
    "jti",
    "name",
    "nbf",
    "nonce",
    "origin_jti",
    "phone_number",
    "preferred_username",
    "scope",
    "scp",
    "sid",
    "tid",
    "token_use",
    "ver",
];

/// The name of the claim that names a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonClaim(String);

/// A claim that cannot name a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it has to be a claim that names a person for good, such as sub; one of a token, a session, a client or an address does not"
)]
pub struct PersonClaimError;

impl FromStr for PersonClaim {
    type Err = PersonClaimError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":/._-".contains(&byte));
        let is_one = !text.is_empty() && is_plain && !NOT_PERSONS.contains(&text);
        if is_one { Ok(Self(text.to_owned())) } else { Err(PersonClaimError) }
    }
}

/// The place where a person's name comes from. Names of two places cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedBy {
    /// The claim, as the stack was deployed at that time.
    pub claim: PersonClaim,
    /// The issuer of the token, as API Gateway's authorizer knows it.
    pub issuer: String,
}

/// The SHA-256 of a plan's facts: what the first person previewed, and the second one sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanHash(String);

/// A text that is not the hash of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the hash of a plan has {HASH_DIGITS} hexadecimal digits in lower case")]
pub struct PlanHashError;

impl PlanHash {
    /// The hash of an action with its arguments. Each part has its length, so different plans differ.
    #[must_use]
    pub fn from_facts(action: &str, arguments: &str) -> Self {
        let text = format!("{}:{action}{}:{arguments}", action.len(), arguments.len());
        Self(Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The hash of an action with these fields.
    #[must_use]
    pub fn from_fields(action: &str, fields: &[(&str, String)]) -> Self {
        Self::from_facts(action, &arguments(fields))
    }

    /// The first digits, for people to compare.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

/// The fields of an action as the audit trail keeps them: each `name: value` on a line.
#[must_use]
pub fn arguments(fields: &[(&str, String)]) -> String {
    let lines = fields.iter().map(|(name, value)| format!("{name}: {}", value.replace('\n', " ")));
    lines.collect::<Vec<_>>().join("\n")
}

impl FromStr for PlanHash {
    type Err = PlanHashError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        let is_hash = text.len() == HASH_DIGITS && text.bytes().all(is_digit);
        if is_hash { Ok(Self(text.to_owned())) } else { Err(PlanHashError) }
    }
}

as_text!(Person, PersonClaim, PlanHash, Ticket);

/// The ticket under which somebody invokes a function without a second person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket(String);

/// A text that is not a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a ticket is 1 to {MAX_TICKET_BYTES} characters of printable ASCII, such as INC-4711")]
pub struct TicketError;

impl FromStr for Ticket {
    type Err = TicketError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let is_ticket = !text.trim().is_empty() && text.len() <= MAX_TICKET_BYTES && is_printable;
        if is_ticket { Ok(Self(text.to_owned())) } else { Err(TicketError) }
    }
}

/// The reason why a run may do more than one person may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consent {
    /// There is none.
    Alone,
    /// Two persons agreed on this plan in the console. The function that acts on it checks that.
    Approved(ActionName, PlanHash),
    /// Somebody invoked the function with a ticket, and an alarm says so.
    Ticket(Ticket),
}

impl Consent {
    /// The consent of a request's fields, and of its plan's. A ticket counts first: it sets off the alarm.
    #[must_use]
    pub fn from_fields(
        ticket: Option<&Ticket>,
        approval: Option<ActionName>,
        (action, fields): (&str, &[(&str, String)]),
    ) -> Self {
        match (ticket, approval) {
            (Some(ticket), _) => Self::Ticket(ticket.clone()),
            (None, Some(name)) => Self::Approved(name, PlanHash::from_fields(action, fields)),
            (None, None) => Self::Alone,
        }
    }

    /// The ticket.
    #[must_use]
    pub fn ticket(&self) -> Option<&Ticket> {
        if let Self::Ticket(ticket) = self { Some(ticket) } else { None }
    }
}

/// Reads a field of a request that is a text, and parses it.
pub(super) fn parsed<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| text.parse().map_err(de::Error::custom)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_has_one_spelling_and_is_no_mail_address() {
        let long = "a".repeat(256);
        for (text, is_one) in [
            ("ana", true),
            ("auth0|5f7c8ec7c33c6c004bbafe82", true),
            ("8c7e1b1e-3f0e-4a55-9d0e-5b6a0d1f2c3d", true),
            (&long[1..], true),
            (&long, false),
            ("", false),
            ("ana ben", false),
            ("[ana]", false),
            ("[ana ben]", false),
            ("{\"id\":1}", false),
            ("ana@example.com", false),
            ("aná", false),
            ("ana\n", false),
        ] {
            assert_eq!(text.parse::<Person>().is_ok(), is_one, "{text:?}");
        }
        let person = |text: &str| text.parse::<Person>().unwrap();
        assert_eq!(person("ana"), person("ana"));
        assert_ne!(person("ana"), person("Ana"));
    }

    #[test]
    fn a_claim_of_persons_is_none_of_a_token_a_client_or_an_address() {
        for (claim, is_one) in [
            ("sub", true),
            ("https://bank.example/employee", true),
            ("username", true),
            ("oid", true),
            ("", false),
            ("a b", false),
            ("email", false),
            ("jti", false),
            ("auth_time", false),
            ("client_id", false),
        ] {
            assert_eq!(claim.parse::<PersonClaim>().is_ok(), is_one, "{claim}");
        }
    }

    #[test]
    fn a_hash_is_of_each_part_of_a_plan() {
        let hash = PlanHash::from_facts("redate", "payments: 7");
        assert_eq!(hash.to_string().parse(), Ok(hash.clone()));
        for other in [("redate", "payments: 8"), ("redat", "epayments: 7"), ("repair-counters", "payments: 7")] {
            assert_ne!(hash, PlanHash::from_facts(other.0, other.1), "{other:?}");
        }
        for text in ["", &hash.as_str()[1..], &hash.as_str().to_uppercase(), &"g".repeat(64)] {
            assert_eq!(text.parse::<PlanHash>(), Err(PlanHashError), "{text}");
        }
    }

    #[test]
    fn a_ticket_is_bounded_and_counts_before_an_approval() {
        for (text, is_one) in
            [("INC-4711", true), ("INC 4711: holiday", true), (" ", false), ("", false), ("a\nb", false)]
        {
            assert_eq!(text.parse::<Ticket>().is_ok(), is_one, "{text:?}");
        }
        assert_eq!("a".repeat(101).parse::<Ticket>(), Err(TicketError));
        let ticket: Ticket = "INC-1".parse().unwrap();
        let name: ActionName = "2026-12-01T09:00:00Z_00000000-0000-5000-8000-000000000001".parse().unwrap();
        let plan = ("redate", [("payments", "7".to_owned())]);
        for (given, approval, consent) in [
            (None, None, Consent::Alone),
            (None, Some(name), Consent::Approved(name, PlanHash::from_facts("redate", "payments: 7"))),
            (Some(&ticket), None, Consent::Ticket(ticket.clone())),
            (Some(&ticket), Some(name), Consent::Ticket(ticket.clone())),
        ] {
            assert_eq!(Consent::from_fields(given, approval, (plan.0, &plan.1)), consent);
        }
    }
}
