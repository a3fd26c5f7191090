//! Amendments: changes of a scheduled payment's content.
//!
//! Each amendment writes details of its own. The head names the details in force, and each amendment's
//! details name the details before them. Details that are not in this chain were never in force:
//! their amendment came too late, or its client never retried it.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::actor::Actor;
use crate::calendar::instant::UtcSecond;
use crate::payment::payment_id::{IdempotencyKey, PaymentId};

/// The most amendments of one payment by its clients. To read all details that were in force takes one
/// call for each client's amendment and each redate.
pub const MAX_AMENDMENTS: u32 = 20;

/// An amendment's id: the version 5 UUID of the payment's id and the amendment's idempotency key. So a retry has the
/// id of the first try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AmendmentId(Uuid);

/// The name of an amendment's details: the version that the amendment gave the payment, and its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AmendmentName {
    /// The version that the amendment gave the payment, at least 2.
    pub version: u32,
    /// The amendment's id.
    pub id: AmendmentId,
}

/// A text that is not the name of an amendment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an amendment's name is its version, from 2 on, a # and a UUID in lower case with hyphens")]
pub struct AmendmentNameError;

impl AmendmentId {
    /// Derives the id from the payment and the amendment's idempotency key.
    #[must_use]
    pub fn derive(payment: PaymentId, key: &IdempotencyKey) -> Self {
        Self(Uuid::new_v5(&payment.uuid(), key.as_str().as_bytes()))
    }

    /// Derives the id of a redate from the payment's version and amendment in force before the redate, and from the new
    /// due time. So a repeated redate finds the details of its first try. A redate to another due time, or after other
    /// amendments, has other details. Idempotency keys have no commas, so no client's amendment has this id.
    #[must_use]
    pub fn for_redate(
        payment: PaymentId,
        (version, in_force): (u32, Option<AmendmentName>),
        due_at: UtcSecond,
    ) -> Self {
        let in_force = in_force.map(|name| name.to_string()).unwrap_or_default();
        let text = format!("redate,{version},{in_force},{due_at}");
        Self(Uuid::new_v5(&payment.uuid(), text.as_bytes()))
    }
}

impl fmt::Display for AmendmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl FromStr for AmendmentId {
    type Err = AmendmentNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = Uuid::try_parse(text).map_err(|_| AmendmentNameError)?;
        // Ids are parts of keys, so they have one spelling.
        if id.hyphenated().to_string() == text { Ok(Self(id)) } else { Err(AmendmentNameError) }
    }
}

impl fmt::Display for AmendmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.version, self.id)
    }
}

impl FromStr for AmendmentName {
    type Err = AmendmentNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (version, id) = text.split_once('#').ok_or(AmendmentNameError)?;
        let (number, id) = (version.parse::<u32>().map_err(|_| AmendmentNameError)?, id.parse()?);
        let is_plain = number >= 2 && number.to_string() == version;
        if is_plain { Ok(Self { version: number, id }) } else { Err(AmendmentNameError) }
    }
}

/// The key of a payment's first details, or of an amendment's details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DetailsKey {
    /// The payment's id.
    pub payment_id: PaymentId,
    /// The amendment's name; `None` for the first details.
    pub amendment: Option<AmendmentName>,
}

/// The amendment that wrote some details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amendment {
    /// The amendment's name.
    pub name: AmendmentName,
    /// The amendment whose details were in force before; `None` if the first details were.
    pub previous: Option<AmendmentName>,
}

/// The last amendment of a payment. A head keeps this until the payment is settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Amended {
    /// The time of the amendment.
    pub at: UtcSecond,
    /// The actor that amended the payment.
    pub by: Actor,
    /// The fields that changed, by their names in the API.
    pub changed: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let payment = PaymentId::derive(&"acc-1".parse().unwrap(), &"rent".parse().unwrap());
        let id = AmendmentId::derive(payment, &"change-1".parse().unwrap());
        let text = "2#5c82e1b2-ff4a-5a9e-8dc3-d5fbbdf9ea45";
        let name = AmendmentName { version: 2, id };
        assert_eq!(name.to_string().len(), text.len());
        assert_eq!(name.to_string().parse(), Ok(name));
        assert_eq!(id, AmendmentId::derive(payment, &"change-1".parse().unwrap()));
        assert_ne!(id, AmendmentId::derive(payment, &"change-2".parse().unwrap()));
        let other = PaymentId::derive(&"acc-2".parse().unwrap(), &"rent".parse().unwrap());
        assert_ne!(id, AmendmentId::derive(other, &"change-1".parse().unwrap()));
        for wrong in ["", "2", "2#", "1#ID", "02#ID", "+2#ID", "2#x", "2#ID#"] {
            let wrong = wrong.replace("ID", &id.to_string());
            assert_eq!(wrong.parse::<AmendmentName>(), Err(AmendmentNameError), "{wrong}");
        }
    }

    #[test]
    fn a_redate_has_an_id_of_its_own_for_each_version_past_and_due_time() {
        let payment = PaymentId::derive(&"acc-1".parse().unwrap(), &"rent".parse().unwrap());
        let due = |text: &str| text.parse::<UtcSecond>().unwrap();
        let name = |key: &str| AmendmentName { version: 2, id: AmendmentId::derive(payment, &key.parse().unwrap()) };
        let (monday, tuesday) = (due("2026-12-28T00:00:00Z"), due("2026-12-29T00:00:00Z"));
        let all = [
            AmendmentId::for_redate(payment, (1, None), tuesday),
            AmendmentId::for_redate(payment, (1, None), monday),
            AmendmentId::for_redate(payment, (2, Some(name("one"))), tuesday),
            AmendmentId::for_redate(payment, (2, Some(name("two"))), tuesday),
            AmendmentId::for_redate(payment, (3, Some(name("two"))), tuesday),
        ];
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
        // The id is stored: with another derivation, a repeated redate would write a second amendment.
        assert_eq!(all[0].to_string(), "d70cb5aa-8735-5e3a-90dd-7189b49e437e");
        assert!("redate,1,,2026-12-29T00:00:00Z".parse::<IdempotencyKey>().is_err());
    }
}
