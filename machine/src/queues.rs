//! The queues of `template.yaml`.

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta, Utc};
use payments_queue::Queue;
use payments_queue::in_process::{QueueSettings, RedrivePolicy};

use crate::template::{Redrive, Template};

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
    /// Creates the template's queues, without messages.
    pub fn from_template(template: &Template) -> Result<Self> {
        let (requests, results) = (queue(template, "RequestQueue")?, queue(template, "ResultQueue")?);
        Ok(Self {
            request_dead_letters: dead_letters_of(&requests)?,
            requests,
            result_dead_letters: dead_letters_of(&results)?,
            results,
            dispatch_failures: queue(template, "DispatchFailures")?,
        })
    }

    /// Returns the queue of an attribute in the template, such as `ResultQueue.Arn`.
    pub fn at(&self, attribute: &str) -> Result<&Queue> {
        let queues = self.by_resource().into_iter();
        let found = queues.filter(|(id, _)| attribute.strip_suffix(".Arn") == Some(id)).map(|(_, queue)| queue).next();
        found.with_context(|| format!("one machine has no queue {attribute}"))
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

/// Creates a queue of the template, which has the name of its resource, and its dead-letter queue.
fn queue(template: &Template, resource: &str) -> Result<Queue> {
    let mut known = template.queues.iter().filter(|(id, _)| id == resource);
    let (_, deployed) = known.next().with_context(|| format!("the template has no queue {resource}"))?;
    let mut settings = QueueSettings::named(resource);
    settings.visibility_timeout = deployed.visibility_timeout.map_or(settings.visibility_timeout, TimeDelta::seconds);
    if let Some(Redrive { dead_letter_target_arn, max_receive_count }) = &deployed.redrive_policy {
        let resource = dead_letter_target_arn.trim_end_matches(".Arn");
        let dead_letter_queue = queue(template, resource)?;
        settings.redrive_policy = Some(RedrivePolicy { max_receive_count: *max_receive_count, dead_letter_queue });
    }
    Ok(Queue::new(settings))
}

fn dead_letters_of(queue: &Queue) -> Result<Queue> {
    let settings = queue.settings();
    let policy = settings.redrive_policy.as_ref();
    policy.map(|it| it.dead_letter_queue.clone()).with_context(|| format!("{} has no dead-letter queue", settings.name))
}
