//! Settlements in the sandbox: the first word of a payment's reference chooses how the transaction service answers.

use chrono::TimeDelta;

/// An answer of the transaction service, chosen by the payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chosen {
    /// The payment fails.
    Refused,
    /// The result comes late, after the request was sent again.
    Late,
    /// The result comes twice.
    Twice,
    /// After the result another one says the opposite.
    Contradicting,
    /// No result comes.
    Never,
}

impl Chosen {
    /// Every choice and its word.
    pub const ALL: [(Self, &str); 5] = [
        (Self::Refused, "SANDBOX-REFUSED"),
        (Self::Late, "SANDBOX-LATE"),
        (Self::Twice, "SANDBOX-TWICE"),
        (Self::Contradicting, "SANDBOX-CONTRADICTING"),
        (Self::Never, "SANDBOX-NEVER"),
    ];

    /// The code of payments that fail by choice.
    pub const CODE: &str = "AM04";

    /// The reason of payments that fail by choice.
    pub const REASON: &str = "insufficient funds";

    /// The delay of a late result. A request is sent again after an hour.
    pub const LATE: TimeDelta = TimeDelta::minutes(90);

    /// The delay from a result to the one that contradicts it.
    pub const CONTRADICTS_AFTER: TimeDelta = TimeDelta::minutes(1);

    /// The choice by a reference, if it makes one.
    #[must_use]
    pub fn parse(reference: &str) -> Option<Self> {
        let word = reference.split(' ').next();
        Self::ALL.into_iter().find(|(_, known)| Some(*known) == word).map(|(chosen, _)| chosen)
    }
}
