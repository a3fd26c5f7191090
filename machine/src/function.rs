//! The functions by name, as `template.yaml` and their packages have it.

use std::fmt;

use payments_http::HttpFunction;

/// One of the functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// A function of the HTTP API.
    Http(HttpFunction),
    /// Claims due payments and redrives pending ones.
    DailyDueSweeper,
    /// Moves heads of cancelled payments to the long-term table, and settled ones that did not expire.
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
    /// Moves payments of dates that were closed later.
    Redate,
    /// Writes the journal.
    Publish,
}

impl Function {
    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http(function) => function.name(),
            Self::DailyDueSweeper => "daily-due-sweeper",
            Self::Archive => "archive",
            Self::Dispatch => "dispatch",
            Self::Settle => "settle",
            Self::Report => "report",
            Self::StreamAggregator => "stream-aggregator",
            Self::Recount => "recount",
            Self::Redate => "redate",
            Self::Publish => "publish",
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
