//! The scopes of access tokens: the rights of a token.

/// A scope, as the template's resource server names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Read payments of accounts.
    Read,
    /// Create, amend and cancel payments of accounts.
    Write,
    /// Read across all accounts: the payments of a date or of a transaction id, the counts of dates, and the events.
    Inspect,
    /// Create payments of any account, in batches. Only payments that the batch itself creates or
    /// repeats can be read with it.
    Feed,
    /// Administer webhook endpoints, which get the events of all accounts.
    Webhooks,
    /// Act in the console.
    Operate,
    /// Send and read files of payments. No route requires it.
    Files,
    /// Approve or refuse another person's action in the console.
    Approve,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 8] =
        [Self::Read, Self::Write, Self::Inspect, Self::Feed, Self::Webhooks, Self::Operate, Self::Files, Self::Approve];

    /// The scope as tokens name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "payments/read",
            Self::Write => "payments/write",
            Self::Inspect => "payments/inspect",
            Self::Feed => "payments/feed",
            Self::Webhooks => "payments/webhooks",
            Self::Operate => "payments/operate",
            Self::Files => "payments/files",
            Self::Approve => "payments/approve",
        }
    }
}
