//! What operators reach besides the tables: functions that they start, queues, and reports.

use std::fmt::{self, Debug};
use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;
use payments_model::{Outage, OutageKind, UtcSecond};

/// The folder of the published reports.
pub const REPORTS: &str = "reports";

/// A function that operators start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Startable {
    /// `daily-due-sweeper`, which sweeps and redrives.
    Sweeper,
    /// `report`.
    Report,
    /// `archive`.
    Archive,
    /// `recount`.
    Recount,
    /// `redate`.
    Redate,
}

/// A queue of the bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BankQueue {
    /// Requests to the transaction service.
    Requests,
    /// Requests that the transaction service could not process.
    RequestDeadLetters,
    /// Settlement results from the transaction service.
    Results,
    /// Settlement results that `settle` could not process.
    ResultDeadLetters,
    /// Places of stream records that `dispatch` could not process.
    DispatchFailures,
}

impl BankQueue {
    /// Every queue.
    pub const ALL: [Self; 5] =
        [Self::Requests, Self::RequestDeadLetters, Self::Results, Self::ResultDeadLetters, Self::DispatchFailures];

    /// The queues that nothing receives from: an operator looks at their messages.
    pub const UNRECEIVED: [Self; 3] = [Self::RequestDeadLetters, Self::ResultDeadLetters, Self::DispatchFailures];

    /// Its name in addresses, forms and the audit trail.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::RequestDeadLetters => "request-dead-letters",
            Self::Results => "results",
            Self::ResultDeadLetters => "result-dead-letters",
            Self::DispatchFailures => "dispatch-failures",
        }
    }

    /// The queue from which its messages came, if they can be moved back there.
    #[must_use]
    pub fn source(self) -> Option<Self> {
        match self {
            Self::RequestDeadLetters => Some(Self::Requests),
            Self::ResultDeadLetters => Some(Self::Results),
            Self::Requests | Self::Results | Self::DispatchFailures => None,
        }
    }
}

impl fmt::Display for BankQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for BankQueue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|queue| queue.as_str() == text);
        known.ok_or_else(|| format!("it has to be one of {}", Self::ALL.map(Self::as_str).join(", ")))
    }
}

/// What a queue holds. SQS's numbers are approximate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Messages that wait to be received.
    pub waiting: u64,
    /// Messages that were received and are neither deleted nor back.
    pub in_flight: u64,
    /// The last time that its messages were moved back, as far as that is known.
    pub last_move: Option<LastMove>,
}

/// How messages were, or are, moved back to the queue from which they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastMove {
    /// SQS's word for how it goes: `RUNNING`, `COMPLETED`, `CANCELLING`, `CANCELLED` or `FAILED`.
    pub status: String,
    /// About how many messages were moved.
    pub moved: u64,
    /// About how many there were when it began.
    pub of: Option<u64>,
    /// When it began.
    pub started_at: Option<UtcSecond>,
    /// Why it failed.
    pub failure: Option<String>,
}

impl LastMove {
    /// Whether it goes on.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.status == "RUNNING"
    }
}

/// A message, as an operator looks at it. It stays in its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledMessage {
    /// Its id.
    pub id: String,
    /// Its text.
    pub body: String,
    /// When it was sent.
    pub sent_at: Option<UtcSecond>,
    /// How often it was received, this time included.
    pub receives: Option<u32>,
}

/// A file of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportFile {
    /// Its path in the storage of reports.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// Whether messages are moved back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveBack {
    /// This call began it.
    Begun,
    /// It was under way already: this call's own first try may have begun it.
    UnderWay,
}

/// A call that failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the call {call} of {service} failed")]
pub struct OperationError {
    /// The service.
    pub service: &'static str,
    /// The call.
    pub call: &'static str,
    /// How it failed.
    pub kind: OutageKind,
    /// Why.
    #[source]
    pub cause: Arc<dyn std::error::Error + Send + Sync>,
}

impl Outage for OperationError {
    fn kind(&self) -> OutageKind {
        self.kind
    }
}

/// What operators reach besides the tables.
#[async_trait]
pub trait Operations: Debug + Send + Sync {
    /// Lets a function run with this input, soon and at least once, or not at all: its answer is not awaited.
    async fn start(&self, function: Startable, input: &str) -> Result<(), OperationError>;

    /// What a queue holds.
    async fn queue(&self, queue: BankQueue) -> Result<QueueState, OperationError>;

    /// Some messages of a queue that nothing receives from, at most 10. They stay in it, but count as received again.
    async fn sample(&self, queue: BankQueue) -> Result<Vec<SampledMessage>, OperationError>;

    /// Moves all messages of a queue of dead letters back to where they came from. It goes on after the call.
    async fn move_back(&self, dead_letters: BankQueue) -> Result<MoveBack, OperationError>;

    /// The files of reports whose paths follow `after`, in the order of their paths, at most `most`.
    async fn reports(&self, after: &str, most: usize) -> Result<Vec<ReportFile>, OperationError>;

    /// A link with which anybody can download a file of a report for a minute. None if the storage gives no links.
    async fn report_link(&self, path: &str) -> Result<Option<String>, OperationError>;
}
