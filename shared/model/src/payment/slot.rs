//! Slots: the permanent places of heads, which differ from their payments' due times after an amendment.
//!
//! A head's key never changes. So a retried create, a cancel and a settlement result find the head, even if the payment
//! has another due time by then. The key has the payment's first due time. The type [`SlotAt`] keeps this first due
//! time apart from the current due time: only the functions here convert between them.

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
    /// The slot's instant, for a payment that is due at `due_at` by its first details.
    pub(crate) fn from_first_due(due_at: UtcSecond) -> Self {
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

    /// Parses the stored instant of a slot.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// A head's permanent place among its account's heads, which are ordered by the first due time of their
/// payments, and then by payment id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// The first due time of the payment.
    pub at: SlotAt,
    /// The payment's id.
    pub payment_id: PaymentId,
}

/// A payment's place in the list of its account, which is ordered by due time, and then by payment id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The due time.
    pub due_at: UtcSecond,
    /// The payment's id.
    pub payment_id: PaymentId,
}

impl Slot {
    /// The place of the slot's payment while the payment has its first due time.
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
    /// The payment with its first due time. For callers that know only the key, this due time is a guess:
    /// an amendment may have changed it.
    #[must_use]
    pub fn guessed_due(&self) -> DuePayment {
        let Slot { at, payment_id } = self.slot;
        DuePayment { account: self.account.clone(), payment_id, due_at: at.first_due() }
    }
}

/// A payment and its due time, as settlement results, reports and events name a payment. A head's key
/// has the first due time instead.
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
    /// The key of the payment's head, if the payment still has its first due time. This key is a guess,
    /// which saves a read. If no head has this key, read the key from the details.
    #[must_use]
    pub fn guessed_key(&self) -> HeadKey {
        let slot = Slot { at: SlotAt::from_first_due(self.due_at), payment_id: self.payment_id };
        HeadKey { account: self.account.clone(), slot }
    }
}

#[cfg(test)]
pub(crate) mod tests;
