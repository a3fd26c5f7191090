//! The runs of one invocation. Each is gathered, committed, published and drained before the next.

use chrono::TimeDelta;
use payments_boot::Deadline;
use payments_model::{BusinessDate, causes};
use payments_store::{ReportCommit, ReportRun, StoreError};
use payments_work::Halt;

use crate::attempt::{Attempt, AttemptFolder};
use crate::drain::Failures;
use crate::error::ReportError;
use crate::function::Report;
use crate::gather::{ENTRIES_AT_ONCE, Gather, Gathered};
use crate::outcome::ReportOutcome;
use crate::retry::retried;

/// The most runs of one invocation. The answer names two files of each, of at most 80 characters: 80 KB
/// of at most 6 MB.
const MAX_RUNS: u64 = 500;

/// The time reserved after gathering for the calls that follow, at most 20 s each if S3 is slow: two parts of the file
/// and its completion, then a summary of up to 100,000 payees, which is begun, has four parts and is completed.
const AFTER_GATHERING: TimeDelta = TimeDelta::seconds(20 * (3 + 6));

/// The end of an attempt.
enum Attempted {
    /// The attempt was committed. There may be more to gather.
    Committed { more: bool },
    /// There was nothing to gather.
    Nothing,
    /// DynamoDB failed for now, or another run was committed first.
    NotNow,
}

impl Report {
    /// Completes the last run, then makes new ones until nothing is left or the deadline comes.
    pub(crate) async fn run(
        &self,
        request_id: &str,
        deadline: &Deadline,
        outcome: &mut ReportOutcome,
    ) -> Result<(), ReportError> {
        outcome.more_waits = true;
        let mut more = true;
        loop {
            let Some(last) = retried(deadline, async || self.store.last_report_run().await).await? else {
                return Ok(());
            };
            if let Some(run) = last.as_ref().filter(|run| !run.finished) {
                outcome.add_unreported(run.first_settled_at, self.clock.now());
            }
            if let Some(run) = last.as_ref().filter(|run| !run.finished)
                && (deadline.has_come() || !self.complete(run, deadline, outcome).await?)
            {
                return Ok(());
            }
            if !more {
                outcome.more_waits = false;
                return Ok(());
            }
            if deadline.has_come() || outcome.runs_committed == MAX_RUNS {
                return Ok(());
            }
            match self.attempt(last.map(|run| run.number), request_id, deadline, outcome).await? {
                Attempted::Committed { more: left } => more = left,
                Attempted::Nothing => {
                    outcome.more_waits = false;
                    return Ok(());
                }
                Attempted::NotNow => return Ok(()),
            }
        }
    }

    /// Publishes and drains a committed run. Returns whether it is finished.
    async fn complete(
        &self,
        run: &ReportRun,
        deadline: &Deadline,
        outcome: &mut ReportOutcome,
    ) -> Result<bool, ReportError> {
        let Some(file) = self.publish(run, deadline).await? else { return Ok(false) };
        outcome.published.extend([run.summary.published.clone(), run.csv.published.clone()]);
        let Some(failures) = self.drain(file, run.rows, deadline, outcome).await? else { return Ok(false) };
        if !self.add_failures(run.number, &failures, deadline).await {
            return Ok(false);
        }
        let marked = retried(deadline, async || self.store.finish_report_run(run.number).await).await?;
        Ok(marked.is_some())
    }

    /// Adds the run's failures to the figures of their due dates, before the run is finished: an invocation that completes
    /// it again finds them added. Returns whether the run can be finished. Billing does not wait for figures, which are
    /// only shown: if they cannot be written, they lack these failures for good, and the console shows how many they lack.
    async fn add_failures(&self, run: u64, failures: &Failures, deadline: &Deadline) -> bool {
        let lacks = |date: &BusinessDate, error: &StoreError| {
            tracing::error!(run, %date, causes = ?causes(error), "the figures of a date lack the failures of a report");
        };
        for (date, codes) in failures {
            match payments_work::retried(deadline, async || self.store.add_failures(*date, run, codes).await).await {
                Ok(()) => {}
                Err(Halt::OutOfTime) => return false,
                Err(Halt::Broken(error)) => lacks(date, &error),
                // One partition has the figures of all dates, so the tries of the others would only take time.
                Err(Halt::GivenUp(error)) => {
                    lacks(date, &error);
                    return true;
                }
            }
        }
        true
    }

    /// Gathers unreported settlements, and commits them as the run after `previous`.
    async fn attempt(
        &self,
        previous: Option<u64>,
        request_id: &str,
        deadline: &Deadline,
        outcome: &mut ReportOutcome,
    ) -> Result<Attempted, ReportError> {
        let number = previous.unwrap_or(0) + 1;
        let Some(mut gather) = Gather::begin(&self.store, self.config.read_shards, deadline).await? else {
            return Ok(Attempted::NotNow);
        };
        outcome.oldest_unreported_seconds.get_or_insert(0);
        let folder = AttemptFolder::new(number, self.clock.instant(), request_id);
        let mut attempt = Attempt::begin(&self.attempts, folder, number)?;
        let gathered = self.gather(&mut gather, &mut attempt, &deadline.earlier(AFTER_GATHERING), outcome).await;
        outcome.skipped += gather.skipped;
        // Each run starts at the oldest entry, and so finds the same unreadable ones again.
        outcome.failed = outcome.failed.max(gather.failed);
        let more = match gathered {
            Ok(more) => more,
            Err(error) => {
                attempt.abandon().await;
                return Err(error);
            }
        };
        let Some(run) = attempt.finish(self.clock.now()).await? else {
            return Ok(if more { Attempted::NotNow } else { Attempted::Nothing });
        };
        match retried(deadline, async || self.store.commit_report_run(&run, previous).await).await? {
            Some(ReportCommit::Done) => {
                outcome.runs_committed += 1;
                outcome.reported += run.rows;
                let (rows, report) = (run.rows, &run.csv.published);
                tracing::info!(run = run.number, rows, report, "a report was committed");
                Ok(Attempted::Committed { more })
            }
            Some(ReportCommit::Lost) => {
                let attempt = &run.csv.attempt;
                tracing::info!(run = run.number, attempt, "an attempt was dropped: another run was committed first");
                Ok(Attempted::NotNow)
            }
            None => Ok(Attempted::NotNow),
        }
    }

    /// Writes unreported settlements to an attempt, up to `MAX_REPORT_ROWS` or the deadline. Returns whether
    /// there may be more.
    async fn gather(
        &self,
        gather: &mut Gather<'_>,
        attempt: &mut Attempt,
        deadline: &Deadline,
        outcome: &mut ReportOutcome,
    ) -> Result<bool, ReportError> {
        let max_rows = u64::from(self.config.max_rows.get());
        while attempt.rows() < max_rows && !deadline.has_come() {
            let room = usize::try_from(max_rows - attempt.rows()).unwrap_or(ENTRIES_AT_ONCE);
            let settlements = match gather.next(room).await? {
                Gathered::Some(settlements) => settlements,
                Gathered::End => return Ok(false),
                Gathered::NotNow => return Ok(true),
            };
            if let Some(first) = settlements.first() {
                outcome.add_unreported(first.settled_at, self.clock.now());
            }
            attempt.write(&settlements).await?;
        }
        Ok(!gather.is_at_end())
    }
}
