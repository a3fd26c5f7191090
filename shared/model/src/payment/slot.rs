//! The place of a payment's head, and how it differs from the payment's due time.
//!
//! A head never moves, so a retried create, a cancel and a settlement result find it, whenever its
//! payment is due by then. Its key has the instant at which the payment was due at first. The
//! compiler keeps that instant and the due time apart: the functions here are the only ways from
//! one to the other.

use std::fmt;
use std::str::FromStr;

use crate::account::AccountId;
use crate::calendar::instant::CalendarError;
use crate::calendar::instant::UtcSecond;
use crate::payment::payment_id::PaymentId;

/// The instant of a [`Slot`]: the first due time of its payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotAt(UtcSecond);

impl SlotAt {
    /// The instant of the slot of a payment that is due at `due_at` by its first details.
    pub(crate) fn of_first_due(due_at: UtcSecond) -> Self {
        Self(due_at)
    }

    /// The first due time of the payment.
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

/// A head's permanent place among its account's heads: by the first due time of its payment, then
/// by payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// The first due time of the payment.
    pub at: SlotAt,
    /// The payment's id.
    pub payment_id: PaymentId,
}

/// A payment's place in the list of its account: by due time, then by payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The due time.
    pub due_at: UtcSecond,
    /// The payment's id.
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
    /// The account that pays.
    pub account: AccountId,
    /// The slot among the account's payments.
    pub slot: Slot,
}

impl HeadKey {
    /// The payment, if it is still due as at first. The due time is a guess, for callers that know
    /// only the key.
    #[must_use]
    pub fn guessed_due(&self) -> DuePayment {
        let Slot { at, payment_id } = self.slot;
        DuePayment { account: self.account.clone(), payment_id, due_at: at.first_due() }
    }
}

/// A payment and its due time, as settlement results, reports and events name it. They are not the
/// key of its head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuePayment {
    /// The account that pays.
    pub account: AccountId,
    /// The payment's id.
    pub payment_id: PaymentId,
    /// The due time.
    pub due_at: UtcSecond,
}

impl DuePayment {
    /// The key of its head, if the payment is still due as at first. The key is a guess, which
    /// saves a read. If it leads to no head, only the details have the key.
    #[must_use]
    pub fn guessed_key(&self) -> HeadKey {
        let slot = Slot { at: SlotAt::of_first_due(self.due_at), payment_id: self.payment_id };
        HeadKey { account: self.account.clone(), slot }
    }
}

#[cfg(test)]
pub(crate) mod tests;
