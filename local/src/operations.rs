//! What operators reach in the console on one machine: queues, reports, and functions that the next tick invokes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use console::{
    BankQueue, MoveBack, OperationError, Operations, QueueState, REPORTS, ReportFile, SampledMessage, Startable,
};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use payments_boot::Clock;
use payments_files::LinkedFiles;
use payments_model::{OutageKind, UtcSecond};
use payments_queue::Queue;

use crate::codes::Codes;
use crate::function::Function;
use crate::triggers::queues::Queues;

/// Where the files of reports are served, each under a code. It is not a path of the bank's API.
pub const REPORTS_PATH: &str = "/reports/";

/// What operators reach on one machine.
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

/// What was started: when, which function, and its input.
type Start = (DateTime<Utc>, Function, String);

/// Functions that operators started and nobody has invoked yet, the oldest first.
#[derive(Debug, Clone, Default)]
pub struct Started(Arc<Mutex<VecDeque<Start>>>);

/// How long a start waits for the one before it. Then it is dropped, as the template's `MaximumEventAgeInSeconds` says.
const STARTS_WAIT: TimeDelta = TimeDelta::seconds(300);

impl Started {
    /// Takes the oldest one that has not waited for too long.
    pub fn take(&self, now: DateTime<Utc>) -> Option<(Function, String)> {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = std::iter::from_fn(|| started.pop_front()).find(|(at, ..)| now - *at < STARTS_WAIT);
        next.map(|(_, function, input)| (function, input))
    }
}

/// The reports, and the codes under which their files are served for a minute.
#[derive(Debug, Clone)]
pub struct ReportLinks {
    reports: LinkedFiles,
    codes: Arc<Codes<Path>>,
}

impl ReportLinks {
    /// Serves the files of a storage.
    pub fn over(reports: Arc<dyn ObjectStore>) -> Self {
        Self { reports: LinkedFiles::without_links(reports), codes: Arc::default() }
    }

    /// Reads the file that a code stands for, with its name. None if there is no such code, or no longer.
    pub(crate) async fn file(&self, code: &str, clock: &Clock) -> Option<(String, Vec<u8>)> {
        let path = self.codes.look(code, clock.instant())?;
        let bytes = self.reports.store().get(&path).await.ok()?.bytes().await.ok()?;
        Some((path.filename()?.to_owned(), bytes.into()))
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
            Startable::Sweeper => Function::DailyDueSweeper,
            Startable::Report => Function::Report,
            Startable::Archive => Function::Archive,
            Startable::Recount => Function::Recount,
            Startable::Redate => Function::Redate,
        };
        let start = (self.clock.instant(), function, input.to_owned());
        self.started.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(start);
        Ok(())
    }

    async fn queue(&self, queue: BankQueue) -> Result<QueueState, OperationError> {
        let counts = queue_of(&self.queues, queue).counts(self.clock.instant());
        let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        Ok(QueueState { waiting: number(counts.visible), in_flight: number(counts.in_flight), last_move: None })
    }

    async fn sample(&self, queue: BankQueue) -> Result<Vec<SampledMessage>, OperationError> {
        let received = queue_of(&self.queues, queue).sample(self.clock.instant());
        let sampled = received.into_iter().map(|message| SampledMessage {
            id: message.message_id.to_string(),
            sent_at: UtcSecond::of(message.sent_at).ok(),
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
        let code = self.links.codes.open(Path::from(path), self.clock.instant());
        code.map(|code| Some(format!("{REPORTS_PATH}{code}"))).map_err(|error| failed("open a code", error))
    }
}

fn failed(call: &'static str, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> OperationError {
    OperationError { service: "this machine", call, kind: OutageKind::Unavailable, cause: Arc::from(error.into()) }
}
