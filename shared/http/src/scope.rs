//! The scopes of access tokens: what a token allows.

/// A scope, as the template's resource server names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Read payments of accounts.
    Read,
    /// Create and cancel payments of accounts.
    Write,
    /// Read across all accounts: the payments of a date or of a transaction id, the counts of dates, and the events.
    Inspect,
    /// Act for any account: send batches. It reads no payment but those that the batch itself creates or repeats.
    Operate,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Inspect, Self::Operate];

    /// The scope as tokens name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "payments/read",
            Self::Write => "payments/write",
            Self::Inspect => "payments/inspect",
            Self::Operate => "payments/operate",
        }
    }
}
