//! The redrive: sends the requests of payments that have been pending for too long again.

use futures::StreamExt as _;
use futures::future::join_all;
use payments_boot::Deadline;
use payments_model::{Head, HeadKey, Outage as _, OutageKind, Shard, State, Status, UtcSecond, causes};
use payments_store::{DuePage, DueRange, DueUntil, StoreError};

use crate::redrive_schedule::{NextStep, next_step, redrivable_until};
use crate::sweep::SHARDS_AT_ONCE;
use crate::{RedriveOutcome, Sweeper};

/// The index entries of one page: as many as one batch read takes.
const PAGE: u16 = 100;

/// The most redrives of one shard in flight.
const REDRIVES_AT_ONCE: usize = 16;

impl RedriveOutcome {
    fn count_failed(&mut self, error: &StoreError) {
        tracing::error!(%error, "a pending payment cannot be read and is not redriven");
        self.failed += 1;
    }
}

impl Sweeper {
    /// Redrives the pending payments of all shards.
    pub(crate) async fn redrive(&self, deadline: &Deadline) -> Result<RedriveOutcome, StoreError> {
        let now = self.clock.now();
        let shards = futures::stream::iter(self.config.read_shards.all());
        let redrives: Vec<_> = shards
            .map(|shard| self.redrive_shard(shard, now, deadline))
            .buffer_unordered(SHARDS_AT_ONCE)
            .collect()
            .await;
        let mut total = RedriveOutcome::default();
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
    ) -> Result<RedriveOutcome, StoreError> {
        let mut outcome = RedriveOutcome::default();
        let latest = redrivable_until(now);
        let until = DueUntil::Instant(self.config.zone.date_of(latest), latest);
        let mut range = DueRange { shard, status: Status::Pending, until, after: None };
        loop {
            let page = match self.redrive_page(&range, now, deadline, &mut outcome).await {
                Ok(page) => page,
                Err(error) if error.kind() == OutageKind::Broken => return Err(error),
                Err(error) => {
                    let (shard, causes) = (shard.get(), causes(&error));
                    tracing::warn!(shard, ?causes, "this run stops redriving the shard; the next run continues");
                    None
                }
            };
            let Some(page) = page else {
                outcome.shards_unfinished = 1;
                return Ok(outcome);
            };
            match page.next {
                Some(next) => range.after = Some(next),
                None => return Ok(outcome),
            }
        }
    }

    /// Redrives one page. Returns `None` if the deadline comes.
    async fn redrive_page(
        &self,
        range: &DueRange,
        now: UtcSecond,
        deadline: &Deadline,
        outcome: &mut RedriveOutcome,
    ) -> Result<Option<DuePage>, StoreError> {
        if deadline.has_come() {
            return Ok(None);
        }
        let mut page = self.store.due_page(range, PAGE).await?;
        let mut keys: Vec<HeadKey> = Vec::new();
        for row in std::mem::take(&mut page.rows) {
            match row {
                Ok(row) => keys.push(row.head_key()),
                Err(error) => outcome.count_failed(&error),
            }
        }
        let mut ready = Vec::new();
        for (_, head) in self.store.hot_heads(&keys).await? {
            match head {
                Ok(head) => ready.extend(self.redrivable(&head, now, outcome)),
                Err(error) => outcome.count_failed(&error),
            }
        }
        for some in ready.chunks(REDRIVES_AT_ONCE) {
            if deadline.has_come() {
                return Ok(None);
            }
            let redriven = join_all(some.iter().map(|(key, attempt)| self.store.redrive(key, *attempt))).await;
            let (done, failed): (Vec<_>, Vec<_>) = redriven.into_iter().partition(Result::is_ok);
            outcome.redriven += done.into_iter().flatten().map(u64::from).sum::<u64>();
            if let Some(Err(error)) = failed.into_iter().next() {
                return Err(error);
            }
        }
        Ok(Some(page))
    }

    /// Returns the key and the last dispatch attempt of a payment whose wait for a redrive is over.
    fn redrivable(&self, head: &Head, now: UtcSecond, outcome: &mut RedriveOutcome) -> Option<(HeadKey, u32)> {
        let (State::Pending, Some(attempt)) = (&head.state, head.dispatch_attempt) else { return None };
        match next_step(head.updated_at(), attempt, now, self.config.max_attempts) {
            NextStep::Wait => outcome.waiting += 1,
            NextStep::Stuck => {
                let (payment_id, due_date) = (head.payment_id, head.due_date);
                tracing::error!(%payment_id, %due_date, attempt, "a payment is still pending after its last request");
                outcome.stuck += 1;
            }
            NextStep::Redrive => return Some((head.key(), attempt)),
        }
        None
    }
}
