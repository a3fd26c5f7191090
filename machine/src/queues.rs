//! The queues, with the dead-letter queues and limits of `template.yaml`.

use chrono::{DateTime, TimeDelta, Utc};
use payments_queue::Queue;
use payments_queue::in_process::{QueueSettings, RedrivePolicy};

/// How often a request is received before it goes to the dead-letter queue.
pub const MAX_REQUEST_RECEIVES: u32 = 5;

/// How often a settlement result is received before it goes to the dead-letter queue: 30 times three minutes outlast an
/// outage of an hour and a half.
pub const MAX_RESULT_RECEIVES: u32 = 30;

/// The visibility timeout of a settlement result: six times the timeout of `settle`.
pub const RESULT_VISIBILITY: TimeDelta = TimeDelta::seconds(180);

/// All queues.
#[derive(Debug, Clone)]
pub struct Queues {
    /// Requests from `dispatch` to the transaction service.
    pub requests: Queue,
    /// Requests that the transaction service cannot read.
    pub request_dead_letters: Queue,
    /// Settlement results from the transaction service to `settle`.
    pub results: Queue,
    /// Settlement results that `settle` cannot process.
    pub result_dead_letters: Queue,
    /// Failure records of batches that `dispatch` could not process.
    pub dispatch_failures: Queue,
}

impl Queues {
    /// Creates empty queues.
    pub fn empty() -> Self {
        let (requests, request_dead_letters) =
            with_dead_letters(QueueSettings::named("payment-requests"), MAX_REQUEST_RECEIVES);
        let results = QueueSettings::named("payment-results");
        let (results, result_dead_letters) =
            with_dead_letters(QueueSettings { visibility_timeout: RESULT_VISIBILITY, ..results }, MAX_RESULT_RECEIVES);
        let dispatch_failures = Queue::new(QueueSettings::named("dispatch-failures"));
        Self { requests, request_dead_letters, results, result_dead_letters, dispatch_failures }
    }

    /// Returns each queue with the name of its resource in the template.
    pub fn by_resource(&self) -> [(&'static str, &Queue); 5] {
        [
            ("RequestQueue", &self.requests),
            ("RequestDeadLetters", &self.request_dead_letters),
            ("ResultQueue", &self.results),
            ("ResultDeadLetters", &self.result_dead_letters),
            ("DispatchFailures", &self.dispatch_failures),
        ]
    }

    /// Returns how many messages and batches could not be processed.
    pub fn dead_letters(&self, now: DateTime<Utc>) -> u64 {
        let queues = [&self.request_dead_letters, &self.result_dead_letters, &self.dispatch_failures];
        let held = queues.map(|queue| queue.counts(now)).into_iter().map(|counts| counts.visible + counts.in_flight);
        u64::try_from(held.sum::<usize>()).unwrap_or(u64::MAX)
    }
}

fn with_dead_letters(settings: QueueSettings, max_receive_count: u32) -> (Queue, Queue) {
    let dead_letter_queue = Queue::new(QueueSettings::named(&format!("{}-dead-letters", settings.name)));
    let policy = RedrivePolicy { max_receive_count, dead_letter_queue: dead_letter_queue.clone() };
    (Queue::new(QueueSettings { redrive_policy: Some(policy), ..settings }), dead_letter_queue)
}
