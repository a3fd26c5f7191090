//! The sort key of the `unreported` index.

use std::fmt;
use std::str::FromStr;

use payments_model::{PaymentId, UtcSecond};

use crate::key::KeyError;

/// The sort key of the `unreported` index: `<quarter-hour>#<settledAt>#<paymentId>`, with the
/// quarter-hour of the settlement as `YYYYMMDDHHMM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnreportedSort {
    /// The time of the payment's settlement.
    pub settled_at: UtcSecond,
    /// The payment's id.
    pub payment_id: PaymentId,
}

impl UnreportedSort {
    /// The encoded start of the quarter-hour of `at`.
    pub fn quarter_hour(at: UtcSecond) -> String {
        let encoded = at.to_string();
        // Fixed width: 2026-12-01T09:47:12Z has its minutes at 14..16.
        let minute: u8 = encoded.get(14..16).and_then(|minute| minute.parse().ok()).unwrap_or(0);
        let digits: String = encoded.chars().take(14).filter(char::is_ascii_digit).collect();
        format!("{digits}{:02}", minute - minute % 15)
    }
}

impl fmt::Display for UnreportedSort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}#{}", Self::quarter_hour(self.settled_at), self.settled_at, self.payment_id)
    }
}

impl FromStr for UnreportedSort {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (quarter, rest) = text.split_once('#')?;
            let (settled_at, payment_id) = rest.split_once('#')?;
            let key = Self { settled_at: settled_at.parse().ok()?, payment_id: payment_id.parse().ok()? };
            (Self::quarter_hour(key.settled_at) == quarter).then_some(key)
        };
        parse().ok_or_else(|| KeyError(text.to_owned(), "unreported"))
    }
}
