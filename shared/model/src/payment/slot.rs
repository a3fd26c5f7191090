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
pub(crate) mod tests;
