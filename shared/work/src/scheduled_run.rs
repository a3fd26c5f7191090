//! A scheduled run from its beginning to its end, when its outcome is stored as the last run of its job.

use std::error::Error;

use payments_boot::{Clock, Deadline};
use payments_model::{UtcSecond, causes};
use payments_store::{Job, LastRun, StoreError};
use serde::Serialize;

/// A scheduled run that has begun.
#[derive(Debug)]
pub struct ScheduledRun {
    job: Job,
    began_at: UtcSecond,
    clock: Clock,
    last_calls: Deadline,
}

impl ScheduledRun {
    /// Begins a run of a job. The invocation's context gives Lambda's deadline, in milliseconds since 1970.
    pub fn begin(job: Job, clock: &Clock, lambda_deadline_millis: u64) -> Self {
        let last_calls = Deadline::for_last_calls(lambda_deadline_millis, clock);
        Self { job, began_at: clock.now(), clock: clock.clone(), last_calls }
    }

    /// Makes a call that stores figures of the run, unless it might not end before Lambda's deadline. A failed call is
    /// logged, and the run continues: its work is done. Returns the answer, if there is one.
    pub async fn last_call<T>(&self, call: impl AsyncFnOnce() -> Result<T, StoreError>) -> Option<T> {
        let job = self.job.as_str();
        if self.last_calls.has_come() {
            tracing::warn!(job, "there was no time to store the figures of a run");
            return None;
        }
        let answer = call().await;
        answer.inspect_err(|error| tracing::warn!(job, causes = ?causes(error), "figures of a run are not stored")).ok()
    }

    /// Ends the run: stores its outcome with `put`, also if the run failed. Returns whether the outcome is stored.
    pub async fn end(
        self,
        outcome: &impl Serialize,
        failure: Option<&(dyn Error + 'static)>,
        put: impl AsyncFnOnce(&LastRun) -> Result<(), StoreError>,
    ) -> bool {
        let failed = failure.map(|failure| causes(failure).join(": "));
        let run = LastRun::new(self.job, (self.began_at, self.clock.now()), Some(outcome));
        let run = run.with_failure(failed.as_deref());
        self.last_call(async || put(&run).await).await.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use chrono::DateTime;
    use serde_json::json;

    use super::*;

    const START: i64 = 1_000_000;

    /// Ends a run that has this much time, and returns what it put.
    async fn put(millis: u64, failure: Option<&StoreError>, answer: Result<(), StoreError>) -> Option<LastRun> {
        let clock = Clock::simulated(|| DateTime::from_timestamp_millis(START).unwrap(), |_| {});
        let run = ScheduledRun::begin(Job::Sweep, &clock, START.unsigned_abs() + millis);
        let failure = failure.map(|error| error as &(dyn Error + 'static));
        let put = Mutex::new(None);
        run.end(&json!({"claimed": 3}), failure, async |run| {
            *put.lock().unwrap() = Some(run.clone());
            answer
        })
        .await;
        put.into_inner().unwrap()
    }

    fn refused() -> StoreError {
        StoreError::Refused { operation: "Query", source: "no such table".into() }
    }

    #[tokio::test]
    async fn a_run_puts_its_outcome_and_its_error() {
        let done = put(60_000, None, Ok(())).await.unwrap();
        assert_eq!((done.outcome, done.failed), (Some(json!({"claimed": 3})), None));
        let failed = put(60_000, Some(&refused()), Ok(())).await.unwrap();
        assert_eq!(failed.outcome, Some(json!({"claimed": 3})));
        assert_eq!(failed.failed.as_deref(), Some("DynamoDB rejected Query: no such table"));
    }

    #[tokio::test]
    async fn a_failed_put_does_not_fail_the_run_and_a_late_one_is_not_made() {
        assert!(put(60_000, None, Err(refused())).await.is_some());
        assert!(put(4_999, None, Ok(())).await.is_none());
    }
}
