//! The redrive: what has been pending for too long is handed over again.

use futures::StreamExt as _;
use payments_boot::Deadline;
use payments_model::{Head, Outage as _, OutageKind, Shard, State, Status, UtcSecond};
use payments_store::{DueRange, DueUntil, HeadKey, HeadSort, MAX_BATCH_GET, StoreError};
use serde::Serialize;

use crate::pace::{self, Verdict};
use crate::{Sweeper, sweep::SHARDS_AT_ONCE};

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
            match redrive.map_err(|error| (error.kind(), error)) {
                Ok(report) => total.add(&report),
                Err((OutageKind::Broken, error)) => return Err(error),
                Err((_, error)) => {
                    tracing::warn!(%error, "a shard is left for the next tick");
                    total.shards_unfinished += 1;
                }
            }
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
        let latest = pace::redrivable_until(now);
        let until = DueUntil::Instant(self.config.zone.date_of(latest), latest);
        let mut range = DueRange { shard, status: Status::Pending, until, after: None };
        loop {
            if deadline.has_come() {
                report.shards_unfinished = 1;
                return Ok(report);
            }
            let page = self.store.due_page(&range, u16::try_from(MAX_BATCH_GET).unwrap_or(u16::MAX)).await?;
            let keys: Vec<HeadKey> = page.rows.iter().map(payments_store::DueRow::head_key).collect();
            let mut up = Vec::new();
            for (_, head) in self.store.hot_heads(&keys).await? {
                match head {
                    Ok(head) => up.extend(self.judge(&head, now, &mut report)),
                    Err(error) => {
                        tracing::error!(%error, "a payment cannot be redriven");
                        report.failed += 1;
                    }
                }
            }
            let redriven =
                futures::stream::iter(up).map(|(key, attempt)| async move { self.store.redrive(&key, attempt).await });
            for redriven in redriven.buffer_unordered(REDRIVES_AT_ONCE).collect::<Vec<_>>().await {
                report.redriven += u64::from(redriven?);
            }
            match page.next {
                Some(next) => range.after = Some(next),
                None => return Ok(report),
            }
        }
    }

    /// Where a payment is up for a redrive: its key, and the attempt it is at.
    fn judge(&self, head: &Head, now: UtcSecond, report: &mut RedriveReport) -> Option<(HeadKey, u32)> {
        let (State::Pending, Some(attempt)) = (&head.state, head.dispatch_attempt) else { return None };
        match pace::judge(head.updated_at(), attempt, now, self.config.max_attempts) {
            Verdict::Wait => report.waiting += 1,
            Verdict::Stuck => {
                tracing::error!(payment_id = %head.payment_id, attempt, "pending for too long");
                report.stuck += 1;
            }
            Verdict::Redrive => {
                let sort = HeadSort { due_at: head.due_at, payment_id: head.payment_id };
                return Some((HeadKey { account: head.account.clone(), sort }, attempt));
            }
        }
        None
    }
}
