//! The redrive: what has been pending for too long is handed over again.

use futures::StreamExt as _;
use futures::future::join_all;
use payments_boot::Deadline;
use payments_model::{Head, HeadKey, Outage as _, OutageKind, Shard, State, Status, UtcSecond, causes};
use payments_store::{DuePage, DueRange, DueUntil, StoreError};
use serde::Serialize;

use crate::patience::{self, Verdict};
use crate::{Sweeper, sweep::SHARDS_AT_ONCE};

/// How many payments are looked at together: what one batch read takes.
const PAGE: u16 = 100;

/// How many redrives of one shard are under way at once.
const REDRIVES_AT_ONCE: usize = 16;

/// What a redrive did.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RedriveReport {
    /// Payments handed over again.
    pub redriven: u64,
    /// Payments pending, but not for long enough.
    pub waiting: u64,
    /// Payments handed over as often as they may be: somebody has to look.
    pub stuck: u64,
    /// Payments that cannot be read; the log says why.
    pub failed: u64,
    /// Shards that were not finished.
    pub shards_unfinished: u64,
}

impl RedriveReport {
    fn add(&mut self, other: &Self) {
        self.redriven += other.redriven;
        self.waiting += other.waiting;
        self.stuck += other.stuck;
        self.failed += other.failed;
        self.shards_unfinished += other.shards_unfinished;
    }
}

impl RedriveReport {
    fn count_failed(&mut self, error: &StoreError) {
        tracing::error!(%error, "a payment cannot be redriven");
        self.failed += 1;
    }
}

impl Sweeper {
    /// Looks through the pending payments of all shards.
    pub(crate) async fn redrive(&self, deadline: &Deadline) -> Result<RedriveReport, StoreError> {
        let now = self.clock.now();
        let shards = futures::stream::iter(self.config.read_shards.all());
        let redrives: Vec<_> = shards
            .map(|shard| self.redrive_shard(shard, now, deadline))
            .buffer_unordered(SHARDS_AT_ONCE)
            .collect()
            .await;
        let mut total = RedriveReport::default();
        for redrive in redrives {
            total.add(&redrive?);
        }
        Ok(total)
    }

    async fn redrive_shard(
        &self,
        shard: Shard,
        now: UtcSecond,
        deadline: &Deadline,
    ) -> Result<RedriveReport, StoreError> {
        let mut report = RedriveReport::default();
        let latest = patience::redrivable_until(now);
        let until = DueUntil::Instant(self.config.zone.date_of(latest), latest);
        let mut range = DueRange { shard, status: Status::Pending, until, after: None };
        loop {
            let page = match self.redrive_page(&range, now, deadline, &mut report).await {
                Ok(page) => page,
                Err(error) if error.kind() == OutageKind::Broken => return Err(error),
                Err(error) => {
                    tracing::warn!(shard = shard.get(), causes = ?causes(&error), "left for the next tick");
                    None
                }
            };
            let Some(page) = page else {
                report.shards_unfinished = 1;
                return Ok(report);
            };
            match page.next {
                Some(next) => range.after = Some(next),
                None => return Ok(report),
            }
        }
    }

    /// Redrives one page, or nothing more where the deadline comes.
    async fn redrive_page(
        &self,
        range: &DueRange,
        now: UtcSecond,
        deadline: &Deadline,
        report: &mut RedriveReport,
    ) -> Result<Option<DuePage>, StoreError> {
        if deadline.has_come() {
            return Ok(None);
        }
        let mut page = self.store.due_page(range, PAGE).await?;
        let mut keys: Vec<HeadKey> = Vec::new();
        for row in std::mem::take(&mut page.rows) {
            match row {
                Ok(row) => keys.push(row.head_key()),
                Err(error) => report.count_failed(&error),
            }
        }
        let mut up = Vec::new();
        for (_, head) in self.store.hot_heads(&keys).await? {
            match head {
                Ok(head) => up.extend(self.judge(&head, now, report)),
                Err(error) => report.count_failed(&error),
            }
        }
        for some in up.chunks(REDRIVES_AT_ONCE) {
            if deadline.has_come() {
                return Ok(None);
            }
            let redriven = join_all(some.iter().map(|(key, attempt)| self.store.redrive(key, *attempt))).await;
            let (done, failed): (Vec<_>, Vec<_>) = redriven.into_iter().partition(Result::is_ok);
            report.redriven += done.into_iter().flatten().map(u64::from).sum::<u64>();
            if let Some(Err(error)) = failed.into_iter().next() {
                return Err(error);
            }
        }
        Ok(Some(page))
    }

    /// Where a payment is up for a redrive: its key, and the attempt it is at.
    fn judge(&self, head: &Head, now: UtcSecond, report: &mut RedriveReport) -> Option<(HeadKey, u32)> {
        let (State::Pending, Some(attempt)) = (&head.state, head.dispatch_attempt) else { return None };
        match patience::judge(head.updated_at(), attempt, now, self.config.max_attempts) {
            Verdict::Wait => report.waiting += 1,
            Verdict::Stuck => {
                tracing::error!(payment_id = %head.payment_id, attempt, "pending for too long");
                report.stuck += 1;
            }
            Verdict::Redrive => return Some((head.key(), attempt)),
        }
        None
    }
}
