//! What clients do with amendments: each act is counted, and over many months none of them may be missing.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// What a client does with an amendment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// It changes something else than the date.
    SameDate,
    /// It makes the payment due earlier.
    Earlier,
    /// It makes the payment due later.
    Later,
    /// It makes the payment due today.
    ToToday,
    /// It makes the payment due as at first.
    BackToFirst,
    /// It amends what was amended before.
    Again,
    /// Two clients amend the same version at once.
    AtOnce,
    /// It amends while the sweep claims.
    WhileClaimed,
    /// It amends while another client cancels.
    WhileCancelled,
    /// It amends while another client repeats the create.
    WhileCreated,
    /// It sends the same amendment again after days.
    RepeatedLate,
    /// It names a version that the payment no longer has, and is told so.
    Stale,
    /// It amends what is no longer scheduled, and is told so.
    TooLate,
    /// It uses an amendment's idempotency key again for another amendment, and is told so.
    KeyReused,
}

/// How often clients did what.
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
