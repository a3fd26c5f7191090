//! The acts of clients with amendments: each act is counted, and many months must have them all.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// An act of a client with an amendment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// Changes another field than the date.
    SameDate,
    /// Makes the payment due earlier.
    Earlier,
    /// Makes the payment due later.
    Later,
    /// Makes the payment due today.
    ToToday,
    /// Makes the payment due as at first.
    BackToFirst,
    /// Amends an amended payment.
    Again,
    /// Two clients amend the same version at once.
    AtOnce,
    /// Amends while the sweep claims.
    WhileClaimed,
    /// Amends while another client cancels.
    WhileCancelled,
    /// Amends while another client repeats the create.
    WhileCreated,
    /// Sends the same amendment again after days.
    RepeatedLate,
    /// Names a version that the payment no longer has, and is told so.
    Stale,
    /// Amends a payment that is no longer scheduled, and is told so.
    TooLate,
    /// Uses an amendment's idempotency key again for another amendment, and is told so.
    KeyReused,
}

/// The counts of acts.
pub type AmendmentCounts = BTreeMap<Act, u64>;

impl Act {
    /// All acts.
    pub fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// Its name, as it is printed.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The counts before anything was done.
    pub(crate) fn none_yet() -> AmendmentCounts {
        Self::all().iter().map(|act| (*act, 0)).collect()
    }
}
