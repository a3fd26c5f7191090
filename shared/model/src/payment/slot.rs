//! Where a payment's head is, and how that differs from when the payment is due.
//!
//! A head never moves, so a retried create, a cancel and a settlement result find it wherever its payment is due by
//! then. Its key has the instant at which the payment was due at first. The compiler keeps that instant and the due time
//! apart: the functions here are the only ways from one to the other.

use std::fmt;
use std::str::FromStr;

use crate::account::AccountId;
use crate::calendar::instant::CalendarError;
use crate::calendar::instant::UtcSecond;
use crate::payment::payment_id::PaymentId;

/// The instant of a [`Slot`]: when the payment was due at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotAt(UtcSecond);

impl SlotAt {
    /// The instant of the slot of a payment that is due at `due_at` by its first details.
    pub(crate) fn of_first_due(due_at: UtcSecond) -> Self {
        Self(due_at)
    }

    /// When the payment was due at first.
    #[must_use]
    pub fn first_due(self) -> UtcSecond {
        self.0
    }
}

impl fmt::Display for SlotAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for SlotAt {
    type Err = CalendarError;

    /// Reads an instant that was a slot's when it was written.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// A head's place among its account's heads, for good: by when its payment was due at first, then by payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// When the payment was due at first.
    pub at: SlotAt,
    /// Which payment.
    pub payment_id: PaymentId,
}

/// A payment's place in the list of its account: by when it is due, then by payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// When the payment is due.
    pub due_at: UtcSecond,
    /// Which payment.
    pub payment_id: PaymentId,
}

impl Slot {
    /// The place of its payment while that is due as at first.
    #[must_use]
    pub fn first_place(self) -> Place {
        Place { due_at: self.at.first_due(), payment_id: self.payment_id }
    }
}

/// The key of a head, the same in both tables.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeadKey {
    /// Whose payment.
    pub account: AccountId,
    /// Which of the account's payments.
    pub slot: Slot,
}

impl HeadKey {
    /// The payment, if it is due as at first. It may not be: this is a guess, for where nothing else is known.
    #[must_use]
    pub fn guessed_due(&self) -> DuePayment {
        let Slot { at, payment_id } = self.slot;
        DuePayment { account: self.account.clone(), payment_id, due_at: at.first_due() }
    }
}

/// A payment and when it is due, as settlement results, reports and events name it. That is not the key of its head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuePayment {
    /// Whose payment.
    pub account: AccountId,
    /// Which payment.
    pub payment_id: PaymentId,
    /// When it is due.
    pub due_at: UtcSecond,
}

impl DuePayment {
    /// The key of its head, if it is due as at first. It may not be: this is a guess, which saves a read. If no head is
    /// there, only the details know the key.
    #[must_use]
    pub fn guessed_key(&self) -> HeadKey {
        let slot = Slot { at: SlotAt::of_first_due(self.due_at), payment_id: self.payment_id };
        HeadKey { account: self.account.clone(), slot }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::Actor;
    use crate::money::Money;
    use crate::payment::forms::{Details, Head, Instruction};

    fn details() -> Details {
        let account: AccountId = "acc-1".parse().unwrap();
        let payment_id = PaymentId::derive(&account, &"rent".parse().unwrap());
        let instruction = Instruction {
            account,
            payee: "landlord-7".parse().unwrap(),
            money: Money { amount: "125000".parse().unwrap(), currency: "GBP".parse().unwrap() },
            scheduled_for: "2026-12-01".parse().unwrap(),
            date_rule: None,
            reference: None,
            data: None,
        };
        let (zone, shards) = ("Europe/London".parse().unwrap(), "10".parse().unwrap());
        Details::accept(
            payment_id,
            instruction,
            zone,
            shards,
            "2026-11-20T08:00:00Z".parse().unwrap(),
            Actor::client("feed"),
        )
    }

    #[test]
    fn a_head_is_at_its_slot_wherever_it_is_due() {
        let details = details();
        let head = Head::scheduled(&details);
        assert_eq!((head.key(), head.slot_at.to_string().as_str()), (details.key(), "2026-12-01T00:00:00Z"));
        let elsewhere = Head { due_at: "2026-12-04T09:30:00Z".parse().unwrap(), ..head.clone() };
        assert_eq!(elsewhere.key(), details.key());
        assert_eq!((head.is_due_as_at_first(), elsewhere.is_due_as_at_first()), (true, false));
        // Only of a payment that is due as at first, a guess leads to the head.
        assert_eq!(head.due_payment().guessed_key(), details.key());
        assert_ne!(elsewhere.due_payment().guessed_key(), details.key());
        assert_eq!(details.key().guessed_due(), head.due_payment());
    }

    /// A copy of a head at another slot would be sent a second time.
    #[test]
    fn a_head_agrees_with_its_details_if_it_is_at_its_slot() {
        let details = details();
        let head = Head::scheduled(&details);
        let (other_time, other_date) = ("2026-12-04T00:00:00Z", "2026-12-04");
        let changed = |slot_at: &str, due_at: &str, due_date: &str| Head {
            slot_at: slot_at.parse().unwrap(),
            due_at: due_at.parse().unwrap(),
            due_date: due_date.parse().unwrap(),
            ..head.clone()
        };
        let (time, date) = ("2026-12-01T00:00:00Z", "2026-12-01");
        for (slot_at, due_at, due_date, want) in [
            (time, time, date, vec![]),
            (time, other_time, date, vec!["dueAt"]),
            (time, other_time, other_date, vec!["dueAt", "dueDate"]),
            (time, time, other_date, vec!["dueDate"]),
            (other_time, time, date, vec!["dueAt"]),
            (other_time, other_time, date, vec!["dueAt"]),
            (other_time, other_time, other_date, vec!["dueAt", "dueDate"]),
        ] {
            let found = changed(slot_at, due_at, due_date).differences(&details);
            assert_eq!(found, want, "{slot_at}, {due_at}, {due_date}");
        }
    }
}
