//! The parts of one machine that operators reach: queues, reports, and functions that the next tick invokes.

use std::sync::Arc;

use async_trait::async_trait;
use console::{
    BankQueue, MoveBack, OperationError, Operations, QueueState, REPORTS, ReportFile, SampledMessage, Startable,
};
use payments_boot::Clock;
use payments_machine::links::ReportLinks;
use payments_machine::{Queues, Stack, Started};
use payments_model::{OutageKind, UtcSecond};
use payments_queue::Queue;

/// The operations of the console on one machine.
#[derive(Debug, Clone)]
pub struct OneMachine {
    /// The queues.
    pub queues: Queues,
    /// The functions that operators started.
    pub started: Started,
    /// The reports.
    pub links: ReportLinks,
    /// The clock.
    pub clock: Clock,
}

impl OneMachine {
    /// Returns what operators reach on this machine.
    pub fn on(stack: &Stack) -> Self {
        Self {
            queues: stack.queues.clone(),
            started: stack.started.clone(),
            links: stack.links.clone(),
            clock: stack.clock.clone(),
        }
    }
}

fn queue_of(queues: &Queues, queue: BankQueue) -> &Queue {
    match queue {
        BankQueue::Requests => &queues.requests,
        BankQueue::RequestDeadLetters => &queues.request_dead_letters,
        BankQueue::Results => &queues.results,
        BankQueue::ResultDeadLetters => &queues.result_dead_letters,
        BankQueue::DispatchFailures => &queues.dispatch_failures,
    }
}

#[async_trait]
impl Operations for OneMachine {
    async fn start(&self, function: Startable, input: &str) -> Result<(), OperationError> {
        let function = match function {
            Startable::Sweeper => "daily-due-sweeper",
            Startable::Report => "report",
            Startable::Archive => "archive",
            Startable::Recount => "recount",
            Startable::Redate => "redate",
            Startable::Undo => "undo",
        };
        self.started.add(self.clock.instant(), function, input);
        Ok(())
    }

    async fn queue(&self, queue: BankQueue) -> Result<QueueState, OperationError> {
        let counts = queue_of(&self.queues, queue).counts(self.clock.instant());
        let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let (waiting, in_flight) = (number(counts.visible), number(counts.in_flight));
        // Queues of one machine have no policies.
        Ok(QueueState { waiting, in_flight, ..QueueState::default() })
    }

    async fn sample(&self, queue: BankQueue) -> Result<Vec<SampledMessage>, OperationError> {
        let received = queue_of(&self.queues, queue).sample(self.clock.instant());
        let sampled = received.into_iter().map(|message| SampledMessage {
            id: message.message_id.to_string(),
            sent_at: UtcSecond::new(message.sent_at).ok(),
            receives: Some(message.receive_count),
            body: message.body,
        });
        Ok(sampled.collect())
    }

    async fn move_back(&self, dead_letters: BankQueue) -> Result<MoveBack, OperationError> {
        if let Some(source) = dead_letters.source() {
            queue_of(&self.queues, dead_letters).move_all_to(queue_of(&self.queues, source), self.clock.instant());
        }
        Ok(MoveBack::Begun)
    }

    async fn reports(&self, after: &str, most: usize) -> Result<Vec<ReportFile>, OperationError> {
        let found =
            self.links.reports.list(REPORTS, after, most).await.map_err(|error| failed("list reports", error))?;
        let files = found.into_iter();
        Ok(files.map(|file| ReportFile { path: file.location.to_string(), bytes: file.size }).collect())
    }

    async fn report_link(&self, path: &str) -> Result<Option<String>, OperationError> {
        self.links.open(path, &self.clock).map(Some).map_err(|error| failed("open a code", error))
    }
}

fn failed(call: &'static str, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> OperationError {
    OperationError { service: "this machine", call, kind: OutageKind::Unavailable, cause: Arc::from(error.into()) }
}
