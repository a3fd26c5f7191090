//! The queues, with the dead-letter queues and limits that the template gives them.

use chrono::{DateTime, TimeDelta, Utc};
use payments_queue::Queue;
use payments_queue::in_process::{QueueSettings, RedrivePolicy};

/// How often a request is received before it goes to the dead letters.
pub const MAX_REQUEST_RECEIVES: u32 = 5;

/// How often a result is received before it goes to the dead letters: often enough to outlast an
/// outage of an hour and a half.
pub const MAX_RESULT_RECEIVES: u32 = 30;

/// How long a result is hidden while it is worked on: six times the timeout of `settle`.
pub const RESULT_VISIBILITY: TimeDelta = TimeDelta::seconds(180);

/// All queues of the bank.
#[derive(Debug, Clone)]
pub struct Queues {
    /// From `dispatch` to the transaction service.
    pub requests: Queue,
    /// Requests that nobody could read.
    pub request_dead_letters: Queue,
    /// From the transaction service to `settle`.
    pub results: Queue,
    /// Results that could not be settled.
    pub result_dead_letters: Queue,
    /// Stream records that `dispatch` gave up.
    pub dispatch_failures: Queue,
}

impl Queues {
    /// The queues, empty.
    #[must_use]
    pub fn empty() -> Self {
        let (requests, request_dead_letters) =
            with_dead_letters(QueueSettings::named("payment-requests"), MAX_REQUEST_RECEIVES);
        let results = QueueSettings::named("payment-results");
        let (results, result_dead_letters) =
            with_dead_letters(QueueSettings { visibility_timeout: RESULT_VISIBILITY, ..results }, MAX_RESULT_RECEIVES);
        let dispatch_failures = Queue::new(QueueSettings::named("dispatch-failures"));
        Self { requests, request_dead_letters, results, result_dead_letters, dispatch_failures }
    }

    /// How many messages and batches of records were given up.
    #[must_use]
    pub fn put_aside(&self, now: DateTime<Utc>) -> u64 {
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
