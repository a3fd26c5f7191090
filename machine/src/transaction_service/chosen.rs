//! Settlements in the sandbox: the first word of a payment's reference chooses how the transaction service answers.

use chrono::TimeDelta;

/// How the transaction service answers a payment that chooses it.
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

    /// How long a late result takes. A request is sent again after an hour.
    pub const LATE: TimeDelta = TimeDelta::minutes(90);

    /// How long after a result the one that contradicts it comes.
    pub const CONTRADICTS_AFTER: TimeDelta = TimeDelta::minutes(1);

    /// What a reference chooses, if anything.
    #[must_use]
    pub fn of(reference: &str) -> Option<Self> {
        let word = reference.split(' ').next();
        Self::ALL.into_iter().find(|(_, known)| Some(*known) == word).map(|(chosen, _)| chosen)
    }
}
