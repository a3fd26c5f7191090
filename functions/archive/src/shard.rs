//! One shard on its way through its past payments: read, looked at, kept in history, removed here.
//!
//! Each step is one round of calls, so that the deadline is never further away than one of them. A
//! payment that was kept and not removed when a run ends is in both tables; the next run finds the
//! same head in history, and removes it.

use std::collections::{HashMap, VecDeque};

use futures::future::join_all;
use payments_boot::{Deadline, pace};
use payments_model::{
    BusinessDate, Head, HeadKey, Outage as _, OutageKind, PaymentId, Shard, Status, UtcSecond, causes,
};
use payments_store::{DueRange, DueRow, DueUntil, MAX_BATCH_GET, PutHead, Removed, StoreError};

use crate::past::{self, Verdict};
use crate::report::Notices;
use crate::{Archive, ArchiveReport};

/// How many index entries are read at once, 300 KB of them, and how few a shard has in hand when it
/// reads on: it never has more than twice as many.
const PAGE: u16 = 1_000;

/// How many writes of one shard are under way at once.
const WRITES_AT_ONCE: usize = 16;

/// What is archived, the few before the many: while no report comes, a cancelled payment does not
/// wait behind all those that wait for it.
const STATUSES: [Status; 3] = [Status::Cancelled, Status::Failed, Status::Processed];

/// What all shards of a run have in common.
pub(crate) struct Run<'a> {
    pub(crate) archive: &'a Archive,
    pub(crate) deadline: Deadline,
    /// When the run began: what is past is settled once.
    pub(crate) now: UtcSecond,
    pub(crate) first_that_stays: BusinessDate,
    pub(crate) notices: Notices,
}

/// One shard of a run.
pub(crate) struct ShardArchive<'a> {
    run: &'a Run<'a>,
    shard: Shard,
    /// The stretches of the index that were not read yet, or not to their end.
    unread: VecDeque<DueRange>,
    /// Read, and not yet looked at.
    in_hand: VecDeque<DueRow>,
    /// Looked at, and to be kept in history.
    fit: VecDeque<Head>,
    /// Kept in history, and to be removed from the hot table.
    kept: VecDeque<Head>,
    throttles: u32,
    report: ArchiveReport,
}

impl<'a> ShardArchive<'a> {
    /// A shard at its beginning.
    pub(crate) fn of(run: &'a Run<'a>, shard: Shard) -> Self {
        let until = DueUntil::Before(run.first_that_stays);
        let unread = STATUSES.map(|status| DueRange { shard, status, until, after: None }).into();
        let (in_hand, fit, kept) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Self { run, shard, unread, in_hand, fit, kept, throttles: 0, report: ArchiveReport::default() }
    }

    /// Archives until nothing is left, the deadline comes, or DynamoDB was asked often enough. What
    /// was done is told also where DynamoDB refuses.
    pub(crate) async fn run(mut self) -> (ArchiveReport, Option<StoreError>) {
        let Run { archive, deadline, .. } = self.run;
        while !self.is_done() && !deadline.has_come() {
            let started = archive.clock.instant();
            let (written, trouble) = self.step().await;
            if trouble.is_none() || written > 0 {
                self.throttles = 0;
            }
            if let Some(error) = trouble {
                if error.kind() == OutageKind::Broken {
                    self.report.remaining_is_lower_bound = true;
                    return (self.report, Some(error));
                }
                self.throttles += 1;
                let Some(wait) = pace::backoff(self.throttles) else {
                    tracing::warn!(shard = self.shard.get(), causes = ?causes(&error), "given up for now");
                    self.report.shards_given_up += 1;
                    break;
                };
                deadline.sleep(wait).await;
            }
            let elapsed = (archive.clock.instant() - started).to_std().unwrap_or_default();
            // A move is two writes, and each of them a half of it.
            deadline.sleep(pace::wait(written, elapsed, archive.config.moves_per_second.saturating_mul(2))).await;
        }
        self.count_remaining().await;
        (self.report, None)
    }

    fn is_done(&self) -> bool {
        self.unread.is_empty() && self.in_hand.is_empty() && self.fit.is_empty() && self.kept.is_empty()
    }

    /// One round of calls: how many writes were answered, and what went wrong. What is furthest on
    /// its way goes first.
    async fn step(&mut self) -> (u32, Option<StoreError>) {
        if !self.kept.is_empty() {
            self.remove_some().await
        } else if !self.fit.is_empty() {
            self.keep_some().await
        } else if !self.unread.is_empty() && self.in_hand.len() < usize::from(PAGE) {
            // Read ahead of the work, so that a run that is stopped knows what it leaves.
            (0, self.read().await.err())
        } else {
            (0, self.look().await.err())
        }
    }

    /// Reads the next page of the index.
    async fn read(&mut self) -> Result<(), StoreError> {
        let Some(range) = self.unread.front_mut() else { return Ok(()) };
        let page = self.run.archive.store.due_page(range, PAGE).await?;
        match page.next {
            Some(next) => range.after = Some(next),
            None => drop(self.unread.pop_front()),
        }
        for row in page.rows {
            match row {
                Ok(row) => self.in_hand.push_back(row),
                // Without a date there is nothing to be patient about.
                Err(error) => self.count_unmovable(None, None, &error.to_string()),
            }
        }
        Ok(())
    }

    /// Looks at the next heads, which decide: the index lags.
    async fn look(&mut self) -> Result<(), StoreError> {
        let some = self.in_hand.iter().take(MAX_BATCH_GET);
        let keys: Vec<HeadKey> = some.clone().map(DueRow::head_key).collect();
        let mut dates: HashMap<PaymentId, BusinessDate> =
            some.map(|row| (row.due.head.payment_id, row.due.due_date)).collect();
        let heads = self.run.archive.store.hot_heads(&keys).await?;
        drop(self.in_hand.drain(..keys.len()));
        for (key, head) in heads {
            let payment_id = key.sort.payment_id;
            let date = dates.remove(&payment_id);
            match head {
                Ok(head) => self.judge(head),
                Err(error) => self.count_unmovable(Some(payment_id), date, &error.to_string()),
            }
        }
        self.report.already_gone += u64::try_from(dates.len()).unwrap_or(u64::MAX);
        Ok(())
    }

    fn judge(&mut self, head: Head) {
        match past::judge(&head, self.run.first_that_stays) {
            Verdict::Move => self.fit.push_back(head),
            Verdict::Stay => self.report.changed += 1,
            Verdict::WaitForReport => {
                self.report.waiting_for_report += 1;
                if self.is_overdue(head.due_date, head.settled_at()) {
                    self.report.overdue_waiting_for_report += 1;
                    self.notice_overdue(head.payment_id, head.due_date, "no report has taken it");
                }
            }
        }
    }

    /// Puts the next few heads to history; those that were throttled stay.
    async fn keep_some(&mut self) -> (u32, Option<StoreError>) {
        let some: Vec<Head> = self.fit.drain(..self.fit.len().min(WRITES_AT_ONCE)).collect();
        let puts = join_all(some.iter().map(|head| self.run.archive.store.put_archived_head(head))).await;
        let (mut answered, mut trouble) = (0, None);
        for (head, put) in some.into_iter().zip(puts) {
            match put {
                Ok(PutHead::Existing(other)) if *other != head => {
                    let (status, version) = (other.state.status(), other.version);
                    let why = format!("history has another head of it, {status} at version {version}");
                    self.count_unmovable(Some(head.payment_id), Some(head.due_date), &why);
                }
                // Either it is there now, or an earlier run was stopped before it could remove it here.
                Ok(PutHead::Created | PutHead::Existing(_)) => self.kept.push_back(head),
                Err(error @ StoreError::Unreadable { .. }) => {
                    self.count_unmovable(Some(head.payment_id), Some(head.due_date), &error.to_string());
                }
                Err(error) => {
                    self.fit.push_back(head);
                    trouble = Some(worse(trouble, error));
                    continue;
                }
            }
            answered += 1;
        }
        (answered, trouble)
    }

    /// Removes the next few heads from the hot table; those that were throttled stay.
    async fn remove_some(&mut self) -> (u32, Option<StoreError>) {
        let some: Vec<Head> = self.kept.drain(..self.kept.len().min(WRITES_AT_ONCE)).collect();
        let removals = join_all(some.iter().map(|head| self.run.archive.store.remove_head(head))).await;
        let (mut answered, mut trouble) = (0, None);
        for (head, removal) in some.into_iter().zip(removals) {
            match removal {
                Ok(Removed::Done) => self.report.archived += 1,
                Ok(Removed::Gone) => self.report.already_gone += 1,
                Ok(Removed::Changed) => self.report.changed += 1,
                Err(error) => {
                    self.kept.push_back(head);
                    trouble = Some(worse(trouble, error));
                    continue;
                }
            }
            answered += 1;
        }
        (answered, trouble)
    }

    /// Counts what is left behind, as far as one read per status reaches.
    async fn count_remaining(&mut self) {
        let rows = self.in_hand.iter().map(|row| (row.due.head.payment_id, row.due.due_date, row.settled_at));
        let heads = self.fit.iter().chain(&self.kept);
        let heads = heads.map(|head| (head.payment_id, head.due_date, head.settled_at()));
        for (payment_id, due_date, settled_at) in rows.chain(heads) {
            self.report.remaining += 1;
            if self.is_overdue(due_date, settled_at) {
                self.report.overdue_remaining += 1;
                self.notice_overdue(payment_id, due_date, "its turn did not come");
            }
        }
        for range in &self.unread {
            if self.run.deadline.has_come() {
                // There is no time left to count.
                self.report.remaining_is_lower_bound = true;
                return;
            }
            match self.run.archive.store.due_count(range).await {
                Ok((count, more)) => {
                    self.report.remaining += count;
                    self.report.remaining_is_lower_bound |= more;
                }
                Err(_) => self.report.remaining_is_lower_bound = true,
            }
        }
    }

    fn is_overdue(&self, due_date: BusinessDate, settled_at: Option<UtcSecond>) -> bool {
        past::is_overdue(self.run.archive.config.zone, due_date, settled_at, self.run.now)
    }

    fn notice_overdue(&self, payment_id: PaymentId, due_date: BusinessDate, why: &str) {
        if self.run.notices.one_more() {
            tracing::warn!(%payment_id, %due_date, why, "a payment stays for more than a day after its time");
        }
    }

    /// Counts a payment that somebody has to look at.
    fn count_unmovable(&mut self, payment_id: Option<PaymentId>, due_date: Option<BusinessDate>, why: &str) {
        self.report.failed += 1;
        let overdue = due_date.is_none_or(|date| self.is_overdue(date, None));
        self.report.overdue_unmovable += u64::from(overdue);
        if self.run.notices.one_more() {
            let (payment_id, due_date) = (payment_id.map(|id| id.to_string()), due_date.map(|date| date.to_string()));
            tracing::error!(payment_id, due_date, overdue, why, "a payment cannot be archived");
        }
    }
}

/// Of two troubles the one that decides: what repeating does not change.
fn worse(known: Option<StoreError>, new: StoreError) -> StoreError {
    known.filter(|known| known.kind() == OutageKind::Broken).unwrap_or(new)
}
