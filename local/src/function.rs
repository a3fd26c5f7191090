//! The functions by name, as `template.yaml` and their packages have it.

use std::fmt;

/// One of the functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Function {
    /// Creates and cancels payments.
    Ingest,
    /// Answers questions about one account.
    QueryAccount,
    /// Answers questions about all accounts.
    QueryDue,
    /// Claims due payments and redrives pending ones.
    DailyDueSweeper,
    /// Moves past payments to the long-term table.
    Archive,
    /// Sends the requests of pending payments.
    Dispatch,
    /// Settles payments.
    Settle,
    /// Reports settlements.
    Report,
    /// Keeps the counters.
    StreamAggregator,
    /// Compares the counters with the payments, and repairs them.
    Recount,
}

impl Function {
    /// The name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::QueryAccount => "query-account",
            Self::QueryDue => "query-due",
            Self::DailyDueSweeper => "daily-due-sweeper",
            Self::Archive => "archive",
            Self::Dispatch => "dispatch",
            Self::Settle => "settle",
            Self::Report => "report",
            Self::StreamAggregator => "stream-aggregator",
            Self::Recount => "recount",
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
