//! The functions, queues and reports that operators reach besides the tables.

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
    /// `undo`.
    Undo,
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

/// The content of a queue. SQS's numbers are approximate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Messages that wait to be received.
    pub waiting: u64,
    /// Messages that were received and are neither deleted nor visible again.
    pub in_flight: u64,
    /// Whether its policy denies every receive.
    pub is_closed: bool,
    /// The last move of its messages, as far as it is known.
    pub last_move: Option<LastMove>,
}

/// A move of messages back to the queue from which they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastMove {
    /// SQS's word for its state: `RUNNING`, `COMPLETED`, `CANCELLING`, `CANCELLED` or `FAILED`.
    pub status: String,
    /// About how many messages were moved.
    pub moved: u64,
    /// About how many messages there were at its start.
    pub of: Option<u64>,
    /// Its start.
    pub started_at: Option<UtcSecond>,
    /// Why it failed.
    pub failure: Option<String>,
}

impl LastMove {
    /// Whether the move is running.
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
    /// The time at which it was sent.
    pub sent_at: Option<UtcSecond>,
    /// The number of its receives, including this one.
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

/// The start of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveBack {
    /// This call started it.
    Begun,
    /// The move was running already: this call's own first try may have started it.
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
    /// The kind of the failure.
    pub kind: OutageKind,
    /// The cause.
    #[source]
    pub cause: Arc<dyn std::error::Error + Send + Sync>,
}

impl Outage for OperationError {
    fn kind(&self) -> OutageKind {
        self.kind
    }
}

/// The operations of operators on everything but the tables.
#[async_trait]
pub trait Operations: Debug + Send + Sync {
    /// Starts a function with this input. Lambda invokes it soon and at least once, or not at all;
    /// nobody waits for its answer.
    async fn start(&self, function: Startable, input: &str) -> Result<(), OperationError>;

    /// The content of a queue.
    async fn queue(&self, queue: BankQueue) -> Result<QueueState, OperationError>;

    /// Some messages of a queue that nothing receives from, at most 10. They stay in the queue, but
    /// count as received again.
    async fn sample(&self, queue: BankQueue) -> Result<Vec<SampledMessage>, OperationError>;

    /// Moves all messages of a queue of dead letters back to their own queues. The move continues after the call.
    async fn move_back(&self, dead_letters: BankQueue) -> Result<MoveBack, OperationError>;

    /// The files of reports whose paths follow `after`, in the order of their paths, at most `most`.
    async fn reports(&self, after: &str, most: usize) -> Result<Vec<ReportFile>, OperationError>;

    /// A link with which anybody can download a file of a report for a minute. `None` if the storage gives no links.
    async fn report_link(&self, path: &str) -> Result<Option<String>, OperationError>;
}
