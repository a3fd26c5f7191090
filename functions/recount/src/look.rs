//! A recount of one date: its counters, its payments, and whether the counters moved in between.

use futures::StreamExt as _;
use payments_boot::Deadline;
use payments_model::{BusinessDate, Status};
use payments_store::{DateCounters, DueRecount, Recounted, StoreError};

use crate::function::Recount;
use crate::seen::Seen;

/// The most recounts of a date whose counters keep moving.
const MAX_TRIES: u32 = 3;

/// The most queries in flight: 32 with a page of 1,000 entries of 0.3 KB each take 10 MB.
const QUERIES_AT_ONCE: usize = 32;

/// The result of recounting a date.
pub(crate) enum Look {
    /// The counters stood still while the payments were counted.
    Still(Seen),
    /// The counters moved during each recount.
    Moving(DateCounters),
    /// This many entries, or a counter, cannot be read.
    Unreadable(u64),
}

/// Why a run ends before its last date.
pub(crate) type Halt = payments_work::Halt<StoreError>;

/// Calls to the tables, retried until the deadline.
pub(crate) struct Reader<'r> {
    pub(crate) recount: &'r Recount,
    pub(crate) deadline: Deadline,
}

impl Reader<'_> {
    /// Makes a call, and retries it if that can help.
    pub(crate) async fn retried<T>(&self, call: impl AsyncFnMut() -> Result<T, StoreError>) -> Result<T, Halt> {
        payments_work::retried(&self.deadline, call).await
    }

    /// Recounts a date: reads its counters before and after all its payments.
    pub(crate) async fn look(&self, date: BusinessDate) -> Result<Look, Halt> {
        match self.look_or_fail(date).await {
            Err(Halt::Broken(error @ StoreError::Unreadable { .. })) => {
                tracing::error!(%date, %error, "a date cannot be recounted: a counter cannot be read");
                Ok(Look::Unreadable(1))
            }
            look => look,
        }
    }

    async fn look_or_fail(&self, date: BusinessDate) -> Result<Look, Halt> {
        let mut before = self.counters(date).await?;
        for _ in 0..MAX_TRIES {
            let found = self.count(date).await?;
            if found.unreadable > 0 {
                let entries = found.unreadable;
                tracing::error!(%date, entries, "a date cannot be recounted: index entries cannot be read");
                for error in found.examples {
                    tracing::error!(%date, %error, "an index entry cannot be read");
                }
                return Ok(Look::Unreadable(entries));
            }
            let after = self.counters(date).await?;
            // Compares moves and not counts: a payment may leave a status while another enters it.
            if before.moves == after.moves {
                return Ok(Look::Still(Seen { counters: after, recounted: found.counts }));
            }
            before = after;
        }
        Ok(Look::Moving(before))
    }

    async fn counters(&self, date: BusinessDate) -> Result<DateCounters, Halt> {
        let mut dates = self.retried(async || self.recount.store.counters(date, date).await).await?;
        Ok(dates.remove(&date).unwrap_or_default())
    }

    async fn count(&self, date: BusinessDate) -> Result<Recounted, Halt> {
        let ranges = self.recount.config.read_shards.all();
        let ranges = ranges.flat_map(|shard| Status::ALL.map(|status| DueRecount::new(date, shard, status)));
        let ranges = futures::stream::iter(ranges).map(|range| self.count_range(range));
        let mut counted = ranges.buffer_unordered(QUERIES_AT_ONCE);
        let mut all = Recounted::default();
        while let Some(found) = counted.next().await {
            all.add(found?);
        }
        Ok(all)
    }

    async fn count_range(&self, mut range: DueRecount) -> Result<Recounted, Halt> {
        while self.retried(async || self.recount.store.recount_next(&mut range).await).await? {}
        Ok(range.found())
    }
}
