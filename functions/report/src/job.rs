//! The runs of one invocation, one after another: each is gathered, committed, published and drained
//! before the next one begins.

use chrono::TimeDelta;
use payments_boot::Deadline;
use payments_model::UtcSecond;
use payments_store::{ReportCommit, ReportRun};

use crate::attempt::{Attempt, AttemptFolder};
use crate::gather::{ENTRIES_AT_ONCE, Gather, Gathered};
use crate::patience::patiently;
use crate::{Report, ReportError, RunReport};

/// The most runs of one invocation. Each is named twice in the answer, by at most 80 characters: 80 KB
/// of the 6 MB that an answer may have.
const MAX_RUNS: u64 = 500;

/// The time kept for what follows gathering: the last part of the file, its completion and the summary,
/// at most 20 s each where S3 is in trouble. A summary of more than 25,000 payees is several parts: where
/// trouble makes them late, the run is not committed, and the next one gathers the same anew.
const AFTER_GATHERING: TimeDelta = TimeDelta::seconds(60);

/// What came of an attempt.
enum Attempted {
    /// It was committed, and whether there may be more to gather.
    Committed { more: bool },
    /// There was nothing to gather.
    Nothing,
    /// DynamoDB asks to be left alone, or another run was committed first.
    NotNow,
}

impl RunReport {
    /// Notes that a settlement of this instant is still waiting.
    fn note_waiting_since(&mut self, settled_at: UtcSecond, now: UtcSecond) {
        let waited = u64::try_from((now.as_chrono() - settled_at.as_chrono()).num_seconds()).unwrap_or(0);
        self.oldest_unreported_seconds = self.oldest_unreported_seconds.max(Some(waited));
    }
}

impl Report {
    /// Runs until nothing is left, or it is time to stop.
    pub(crate) async fn run(
        &self,
        request_id: &str,
        deadline: &Deadline,
        did: &mut RunReport,
    ) -> Result<(), ReportError> {
        // Until nothing more is known to wait.
        did.more_waits = true;
        let mut more = true;
        loop {
            let Some(last) = patiently(deadline, || self.store.last_report_run()).await? else { return Ok(()) };
            if let Some(run) = last.as_ref().filter(|run| !run.finished) {
                did.note_waiting_since(run.first_settled_at, self.clock.now());
            }
            if let Some(run) = last.as_ref().filter(|run| !run.finished)
                && (deadline.has_come() || !self.complete(run, deadline, did).await?)
            {
                return Ok(());
            }
            if !more {
                did.more_waits = false;
                return Ok(());
            }
            if deadline.has_come() || did.runs_committed == MAX_RUNS {
                return Ok(());
            }
            match self.attempt(last.map(|run| run.number), request_id, deadline, did).await? {
                Attempted::Committed { more: left } => more = left,
                Attempted::Nothing => {
                    did.more_waits = false;
                    return Ok(());
                }
                Attempted::NotNow => return Ok(()),
            }
        }
    }

    /// Publishes and drains a committed run. Says whether it is finished.
    async fn complete(&self, run: &ReportRun, deadline: &Deadline, did: &mut RunReport) -> Result<bool, ReportError> {
        let file = self.publish(run).await?;
        did.published.extend([run.summary.published.clone(), run.csv.published.clone()]);
        if !self.drain(file, run.rows, deadline, did).await? {
            return Ok(false);
        }
        let marked = patiently(deadline, || self.store.finish_report_run(run.number)).await?;
        Ok(marked.is_some())
    }

    /// Gathers what is unreported, and commits it as the run after `previous`.
    async fn attempt(
        &self,
        previous: Option<u64>,
        request_id: &str,
        deadline: &Deadline,
        did: &mut RunReport,
    ) -> Result<Attempted, ReportError> {
        let number = previous.unwrap_or(0) + 1;
        let Some(mut gather) = Gather::begin(&self.store, self.config.read_shards, deadline).await? else {
            return Ok(Attempted::NotNow);
        };
        did.oldest_unreported_seconds.get_or_insert(0);
        let folder = AttemptFolder::new(number, self.clock.instant(), request_id);
        let mut attempt = Attempt::begin(&self.files, folder, number)?;
        let gathered = self.gather(&mut gather, &mut attempt, &deadline.earlier(AFTER_GATHERING), did).await;
        did.skipped += gather.walked.skipped;
        // Each walk begins at the oldest entry, and so meets again what an earlier one could not read.
        did.failed = did.failed.max(gather.walked.failed);
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
        match patiently(deadline, || self.store.commit_report_run(&run, previous)).await? {
            Some(ReportCommit::Done) => {
                did.runs_committed += 1;
                did.reported += run.rows;
                tracing::info!(run = run.number, rows = run.rows, report = %run.csv.published, "committed");
                Ok(Attempted::Committed { more })
            }
            Some(ReportCommit::Lost) => {
                tracing::info!(run = run.number, attempt = %run.csv.attempt, "another run was committed first");
                Ok(Attempted::NotNow)
            }
            None => Ok(Attempted::NotNow),
        }
    }

    /// Writes what is unreported to an attempt, up to the most rows of a report and to the deadline. Says
    /// whether there may be more.
    async fn gather(
        &self,
        gather: &mut Gather<'_>,
        attempt: &mut Attempt,
        deadline: &Deadline,
        did: &mut RunReport,
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
                did.note_waiting_since(first.settled_at, self.clock.now());
            }
            attempt.write(&settlements).await?;
        }
        Ok(!gather.is_at_end())
    }
}
