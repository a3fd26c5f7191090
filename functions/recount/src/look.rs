//! One look at a date: its counters, its payments, and whether the counters stood still meanwhile.

use futures::StreamExt as _;
use payments_boot::{Deadline, pace};
use payments_model::{BusinessDate, DayCounts, Outage as _, OutageKind, Status};
use payments_store::{DateCounters, DueRecount, Recounted, StoreError};

use crate::Recount;

/// How often payments are counted whose counters move meanwhile, before they are left moving.
const MAX_TRIES: u32 = 3;

/// How many queries are under way at once: 32 of them hold a page of 1,000 entries of 0.3 KB each,
/// 10 MB in all.
const QUERIES_AT_ONCE: usize = 32;

/// What was to be seen of a date.
pub(crate) enum Look {
    /// The counters stood still while the payments were counted.
    Still(Seen),
    /// They did not, however often it was tried.
    Moving(DateCounters),
    /// So many entries cannot be read, or a counter cannot.
    Unreadable(u64),
}

/// Counters that stood still, and the payments.
pub(crate) struct Seen {
    pub(crate) counters: DateCounters,
    pub(crate) recounted: DayCounts,
}

impl Seen {
    /// Whether the counters say what the payments say, and nothing was unparsed.
    pub(crate) fn is_exact(&self) -> bool {
        self.counters.counts == self.recounted
    }

    /// Whether another look saw the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.counters == other.counters && self.recounted == other.recounted
    }
}

/// Why a run ends before its last date.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The deadline came.
    OutOfTime,
    /// DynamoDB throttled or did not answer, for longer than is waited.
    GivenUp(StoreError),
    /// Repeating changes nothing.
    Broken(StoreError),
}

/// A way to the tables that waits where it has to, but not past the deadline.
pub(crate) struct Reader<'r> {
    pub(crate) recount: &'r Recount,
    pub(crate) deadline: Deadline,
}

impl Reader<'_> {
    /// Makes a call until it succeeds, fails for good, or has failed too often.
    pub(crate) async fn patiently<T>(&self, mut call: impl AsyncFnMut() -> Result<T, StoreError>) -> Result<T, Halt> {
        let mut failures = 0;
        while !self.deadline.has_come() {
            let error = match call().await {
                Ok(done) => return Ok(done),
                Err(error) if error.kind() == OutageKind::Broken => return Err(Halt::Broken(error)),
                Err(error) => error,
            };
            failures += 1;
            let Some(wait) = pace::backoff(failures) else { return Err(Halt::GivenUp(error)) };
            self.deadline.sleep(wait).await;
        }
        Err(Halt::OutOfTime)
    }

    /// Looks at a date. Between the two times that the counters are read, all payments are.
    pub(crate) async fn look(&self, date: BusinessDate) -> Result<Look, Halt> {
        match self.look_or_fail(date).await {
            Err(Halt::Broken(error @ StoreError::Unreadable { .. })) => {
                tracing::error!(%date, %error, "a date cannot be recounted");
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
                let example = found.example.map(|error| error.to_string());
                tracing::error!(%date, entries = found.unreadable, example, "a date cannot be recounted");
                return Ok(Look::Unreadable(found.unreadable));
            }
            let after = self.counters(date).await?;
            // Not the numbers: what leaves a status and comes back to it has moved all the same.
            if before.moves == after.moves {
                return Ok(Look::Still(Seen { counters: after, recounted: found.counts }));
            }
            before = after;
        }
        Ok(Look::Moving(before))
    }

    async fn counters(&self, date: BusinessDate) -> Result<DateCounters, Halt> {
        let mut dates = self.patiently(async || self.recount.store.counters(date, date).await).await?;
        Ok(dates.remove(&date).unwrap_or_default())
    }

    /// Counts the payments of a date.
    async fn count(&self, date: BusinessDate) -> Result<Recounted, Halt> {
        let stretches = self.recount.config.read_shards.all();
        let stretches = stretches.flat_map(|shard| Status::ALL.map(|status| DueRecount::of(date, shard, status)));
        let stretches = futures::stream::iter(stretches).map(|stretch| self.count_stretch(stretch));
        let mut counted = stretches.buffer_unordered(QUERIES_AT_ONCE);
        let mut all = Recounted::default();
        while let Some(found) = counted.next().await {
            all.add(found?);
        }
        Ok(all)
    }

    async fn count_stretch(&self, mut stretch: DueRecount) -> Result<Recounted, Halt> {
        while self.patiently(async || self.recount.store.recount_next(&mut stretch).await).await? {}
        Ok(stretch.found())
    }
}
