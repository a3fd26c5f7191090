//! The scopes of access tokens: what a token allows.

/// A scope, as the template's resource server names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Read payments of accounts.
    Read,
    /// Create and cancel payments of accounts.
    Write,
    /// Use the routes that concern all accounts: batches, dates, counts, transactions.
    Operate,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Operate];

    /// The scope as tokens name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "payments/read",
            Self::Write => "payments/write",
            Self::Operate => "payments/operate",
        }
    }
}
