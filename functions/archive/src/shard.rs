//! Archives shards: reads the index, checks the heads, puts them to history, removes them from the hot table.
//!
//! Each step is one round of calls, so the deadline is checked between rounds. A payment that was put to history but
//! not removed when a run ends is in both tables. The next run finds the same head in history and removes the hot one.

use std::collections::{HashMap, VecDeque};

use futures::StreamExt as _;
use payments_boot::Deadline;
use payments_model::{BusinessDate, Head, HeadKey, PaymentId, Shard, Status, UtcSecond, causes};
use payments_store::key::{account_partition, head_sort};
use payments_store::{Archived, DueRange, DueRow, DueUntil, MAX_BATCH_GET, Removed, StoreError, StoredHead};
use payments_work::{Halt, Round, Work, at_once, drive};

use crate::function::{ARCHIVE_EVERY, Archive};
use crate::outcome::{ArchiveOutcome, Notices};
use crate::readiness::{Readiness, first_expiring_date, first_kept_date, is_overdue};

/// The most shards archived at once: 32 with two pages of 1,000 entries of 0.3 KB and 100 heads of 1 KB,
/// each parsed and as it was read, take 26 MB. If there are more, the next run begins with the others.
const SHARDS_AT_ONCE: u16 = 32;

/// The index entries of one page, 300 KB. A shard with fewer entries in hand reads the next page, so it
/// never holds more than two.
const PAGE: u16 = 1_000;

/// The most writes of one shard in flight.
const WRITES_AT_ONCE: usize = 16;

/// The statuses that are archived. The rare ones come first: without reports, a cancelled payment does
/// not wait behind all processed ones.
const STATUSES: [Status; 3] = [Status::Cancelled, Status::Failed, Status::Processed];

/// The state that all shards of a run share.
struct Run<'a> {
    archive: &'a Archive,
    deadline: Deadline,
    /// The start of the run, at which all dates are judged.
    now: UtcSecond,
    first_kept_date: BusinessDate,
    /// The first date whose settled payments are not looked at.
    first_expiring_date: BusinessDate,
    notices: Notices,
}

/// One shard of a run.
struct ShardArchive<'a> {
    run: &'a Run<'a>,
    shard: Shard,
    /// The ranges of the index that were not read to their end.
    unread: VecDeque<DueRange>,
    /// Index entries whose heads are not read yet.
    entries: VecDeque<DueRow>,
    /// Heads to be put to history.
    ready: VecDeque<StoredHead>,
    /// Heads in history, to be removed from the hot table.
    copied: VecDeque<StoredHead>,
    outcome: ArchiveOutcome,
}

impl Archive {
    /// Archives all shards.
    pub(crate) async fn archive(&self, deadline: Deadline) -> (ArchiveOutcome, Option<StoreError>) {
        let now = self.clock.now();
        let first_kept_date = first_kept_date(self.config.zone, now);
        let first_expiring_date = first_expiring_date(self.config.zone, now);
        let notices = Notices::default();
        let run = Run { archive: self, deadline, now, first_kept_date, first_expiring_date, notices };
        let shards = futures::stream::iter(self.config.read_shards.in_turn(now, ARCHIVE_EVERY, SHARDS_AT_ONCE));
        let ends = shards.map(|shard| ShardArchive::new(&run, shard).run());
        let ends: Vec<_> = ends.buffer_unordered(SHARDS_AT_ONCE.into()).collect().await;
        let (mut total, mut broken) = (ArchiveOutcome::default(), None);
        for (outcome, error) in ends {
            total.add(&outcome);
            broken = broken.or(error);
        }
        let left_out = run.notices.left_out();
        if left_out > 0 {
            tracing::warn!(left_out, "the log does not name all payments that were not archived");
        }
        // Also emitted when a shard failed.
        self.metrics.emit(self.clock.instant(), &total);
        (total, broken)
    }
}

impl Work for ShardArchive<'_> {
    type Error = StoreError;

    fn is_done(&self) -> bool {
        self.unread.is_empty() && self.entries.is_empty() && self.ready.is_empty() && self.copied.is_empty()
    }

    /// Makes one round of calls, for the payments that are furthest first. A move is two writes.
    async fn round(&mut self) -> Round<StoreError> {
        let (done, failure) = if !self.copied.is_empty() {
            self.remove_some().await
        } else if !self.ready.is_empty() {
            self.copy_some().await
        } else if !self.unread.is_empty() && self.entries.len() < usize::from(PAGE) {
            // A stopped run counts what it leaves, because it read ahead.
            (0, self.read().await.err())
        } else {
            (0, self.check().await.err())
        };
        Round { done, per_second: self.run.archive.config.moves_per_second.saturating_mul(2), failure }
    }
}

impl<'a> ShardArchive<'a> {
    fn new(run: &'a Run<'a>, shard: Shard) -> Self {
        let range = |status: Status| {
            let before = if status.is_settled() { run.first_expiring_date } else { run.first_kept_date };
            DueRange { shard, status, until: DueUntil::Before(before), after: None }
        };
        let unread = STATUSES.map(range).into();
        let entries = VecDeque::new();
        let ready = VecDeque::new();
        let copied = VecDeque::new();
        Self { run, shard, unread, entries, ready, copied, outcome: ArchiveOutcome::default() }
    }

    /// Archives until nothing is left, the deadline comes, or retries are exhausted. Returns the outcome
    /// so far, also with an error.
    async fn run(mut self) -> (ArchiveOutcome, Option<StoreError>) {
        let Run { archive, deadline, .. } = self.run;
        match drive(&mut self, &archive.clock, deadline).await {
            Ok(()) | Err(Halt::OutOfTime) => {}
            Err(Halt::Broken(error)) => {
                self.outcome.remaining_is_lower_bound = true;
                return (self.outcome, Some(error));
            }
            Err(Halt::GivenUp(error)) => {
                let (shard, causes) = (self.shard.get(), causes(&error));
                tracing::warn!(shard, ?causes, "this run stops archiving the shard; the next run continues");
                self.outcome.shards_given_up += 1;
            }
        }
        self.count_remaining().await;
        (self.outcome, None)
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
                Ok(row) => self.entries.push_back(row),
                Err(error) => self.count_unmovable(None, None, &error.to_string()),
            }
        }
        Ok(())
    }

    /// Reads the heads of the next entries and decides by them, since the index lags.
    async fn check(&mut self) -> Result<(), StoreError> {
        let some = self.entries.iter().take(MAX_BATCH_GET);
        let keys: Vec<HeadKey> = some.clone().map(|row| row.head.clone()).collect();
        let mut dates: HashMap<PaymentId, BusinessDate> =
            some.map(|row| (row.due.payment_id, row.due.due_date)).collect();
        let heads = self.run.archive.store.stored_heads(&keys).await?;
        drop(self.entries.drain(..keys.len()));
        for (key, head) in heads {
            let payment_id = key.slot.payment_id;
            let date = dates.remove(&payment_id);
            match head {
                Ok(head) => self.sort(head),
                Err(error) => self.count_unmovable(Some(payment_id), date, &error.to_string()),
            }
        }
        self.outcome.already_gone += u64::try_from(dates.len()).unwrap_or(u64::MAX);
        Ok(())
    }

    fn sort(&mut self, stored: StoredHead) {
        let head = stored.known();
        match Readiness::from_head(head, self.run.first_kept_date) {
            Readiness::Ready => self.ready.push_back(stored),
            Readiness::NotOver => self.outcome.changed += 1,
            Readiness::WaitsForReport => {
                self.outcome.waiting_for_report += 1;
                if self.is_overdue(head.due_date, head.settled_at()) {
                    self.outcome.overdue_waiting_for_report += 1;
                    let (payment_id, due_date) = (head.payment_id, head.due_date);
                    self.notice_overdue(payment_id, due_date, "it is in no report yet");
                }
            }
        }
    }

    /// Puts the next few heads to history. Those whose write was throttled or not answered stay queued.
    async fn copy_some(&mut self) -> (u32, Option<StoreError>) {
        let store = &self.run.archive.store;
        let puts = at_once(&mut self.ready, WRITES_AT_ONCE, async |head| store.put_archived_head(head).await).await;
        let (mut answered, mut failure) = (0, None);
        for (stored, put) in puts {
            let head = stored.known();
            match put {
                Ok(Archived::Different(other)) => {
                    let why = self.why_different(&other);
                    self.count_unmovable(Some(head.payment_id), Some(head.due_date), &why);
                }
                // Perhaps by an earlier run that stopped before the removal.
                Ok(Archived::Done) => self.copied.push_back(stored),
                Ok(Archived::Changed) => self.outcome.changed += 1,
                Err(error @ StoreError::Unreadable { .. }) => {
                    self.count_unmovable(Some(head.payment_id), Some(head.due_date), &error.to_string());
                }
                Err(error) => {
                    self.ready.push_back(stored);
                    failure = Some(StoreError::worse(failure, error));
                    continue;
                }
            }
            answered += 1;
        }
        (answered, failure)
    }

    /// Removes the next few heads from the hot table. Those whose write was throttled or not answered stay queued.
    async fn remove_some(&mut self) -> (u32, Option<StoreError>) {
        let store = &self.run.archive.store;
        let removals = at_once(&mut self.copied, WRITES_AT_ONCE, async |head| store.remove_head(head).await).await;
        let (mut answered, mut failure) = (0, None);
        for (stored, removal) in removals {
            match removal {
                Ok(Removed::Done) => self.outcome.archived += 1,
                Ok(Removed::Gone) => self.outcome.already_gone += 1,
                Ok(Removed::Changed) => self.outcome.changed += 1,
                // The next round copies it again, and then finds it gone from the hot table.
                Ok(Removed::Grown(grown)) => self.ready.push_back(*grown),
                Err(error) => {
                    self.copied.push_back(stored);
                    failure = Some(StoreError::worse(failure, error));
                    continue;
                }
            }
            answered += 1;
        }
        (answered, failure)
    }

    /// Counts the payments left, with at most one read per status.
    async fn count_remaining(&mut self) {
        let rows = self.entries.iter().map(|row| (row.due.payment_id, row.due.due_date, row.settled_at));
        let heads = self.ready.iter().chain(&self.copied).map(StoredHead::known);
        let heads = heads.map(|head| (head.payment_id, head.due_date, head.settled_at()));
        for (payment_id, due_date, settled_at) in rows.chain(heads) {
            self.outcome.remaining += 1;
            if self.is_overdue(due_date, settled_at) {
                self.outcome.overdue_remaining += 1;
                self.notice_overdue(payment_id, due_date, "the run ended before it was archived");
            }
        }
        for range in &self.unread {
            if self.run.deadline.has_come() {
                self.outcome.remaining_is_lower_bound = true;
                return;
            }
            match self.run.archive.store.due_count(range).await {
                Ok((count, more)) => {
                    self.outcome.remaining += count;
                    self.outcome.remaining_is_lower_bound |= more;
                }
                Err(_) => self.outcome.remaining_is_lower_bound = true,
            }
        }
    }

    /// Names the head in history that differs from the one in the hot table.
    fn why_different(&self, other: &Head) -> String {
        let table = &self.run.archive.config.data.tables.history;
        let status = other.state.status();
        let version = other.version;
        let key = other.key();
        let (pk, sk) = (account_partition(&key.account), head_sort(key.slot));
        format!("the item {pk} / {sk} of table {table} is a different head, {status} at version {version}")
    }

    fn is_overdue(&self, due_date: BusinessDate, settled_at: Option<UtcSecond>) -> bool {
        is_overdue(self.run.archive.config.zone, due_date, settled_at, self.run.now)
    }

    fn notice_overdue(&self, payment_id: PaymentId, due_date: BusinessDate, why: &str) {
        if self.run.notices.one_more() {
            tracing::warn!(%payment_id, %due_date, why, "a payment has been due for the archive for more than a day");
        }
    }

    /// Counts a payment that an operator has to repair.
    fn count_unmovable(&mut self, payment_id: Option<PaymentId>, due_date: Option<BusinessDate>, why: &str) {
        self.outcome.failed += 1;
        let overdue = due_date.is_none_or(|date| self.is_overdue(date, None));
        self.outcome.overdue_unmovable += u64::from(overdue);
        if self.run.notices.one_more() {
            let (payment_id, due_date) = (payment_id.map(|id| id.to_string()), due_date.map(|date| date.to_string()));
            tracing::error!(payment_id, due_date, overdue, why, "a payment cannot be archived");
        }
    }
}
