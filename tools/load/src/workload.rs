//! The workloads of a load: requests of one kind, at which rate they are due, and how many are in flight.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::measurements::Latency;
use crate::settings::{SINGLES, Settings};

/// The feed's rate: a million payments within half an hour.
const FEED_PER_SECOND: u32 = 556;

/// The other requests of a mixed load for every [`FEED_PER_SECOND`] payments of the feed. Single creates are a million
/// in twelve hours. The queries are a guess: an account looks after each create or two, consumers read their shards, a
/// screen shows the counts.
const BESIDE_THE_FEED: [(RequestKind, u64); 5] = [
    (RequestKind::Create, CREATES),
    (RequestKind::ListByAccount, 12),
    (RequestKind::ListByDate, 2),
    (RequestKind::Counts, 1),
    (RequestKind::Transaction, 6),
];

const CREATES: u64 = 24;

/// The queries of one kind that are in flight.
const QUERIES: u64 = 4;

const SECOND: u64 = 1_000_000_000;

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// Creates a batch of payments.
    Feed,
    /// Creates a payment.
    Create,
    /// Lists payments of an account.
    ListByAccount,
    /// Lists payments of a date, of one shard.
    ListByDate,
    /// Reads the counters of a date.
    Counts,
    /// Looks up a payment by its transaction id.
    Transaction,
}

impl RequestKind {
    /// Returns the name in the summary.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Feed => "feed",
            Self::Create => "create",
            Self::ListByAccount => "listByAccount",
            Self::ListByDate => "listByDate",
            Self::Counts => "counts",
            Self::Transaction => "transaction",
        }
    }

    pub(crate) fn creates(self) -> bool {
        matches!(self, Self::Feed | Self::Create)
    }
}

/// A workload.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) kind: RequestKind,
    /// The requests in flight.
    pub(crate) concurrency: u64,
    pub(crate) latency: Latency,
    /// The numbers of its payments: from, and up to.
    payments: (u64, u64),
    /// The number of payments that one request creates.
    batch: u64,
    /// The time between two requests, in nanoseconds.
    period: Option<u64>,
    next: AtomicU64,
}

/// One request of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) number: u64,
    /// The numbers of its payments: from, and up to.
    pub(crate) payments: (u64, u64),
    /// The due time of the request, after the start. Without a rate there is none.
    due: Option<Duration>,
}

impl Workload {
    /// Returns the workloads of a load.
    pub(crate) fn parse(settings: &Settings) -> Result<Vec<Self>> {
        let Settings { payments, single, rate, mixed, .. } = *settings;
        let (batch, concurrency) = (settings.batch(), settings.concurrency());
        let feed = if single { RequestKind::Create } else { RequestKind::Feed };
        if !mixed {
            let period = rate.map(|rate| batch * SECOND / u64::from(rate));
            return Ok(vec![Self::new(feed, concurrency, (0, payments), batch, period)?]);
        }
        let rate = u64::from(rate.unwrap_or(FEED_PER_SECOND));
        let pace = u64::from(FEED_PER_SECOND);
        let fed = payments * pace / (pace + CREATES);
        let mut workloads = vec![Self::new(feed, concurrency, (0, fed), batch, Some(batch * SECOND / rate))?];
        for (kind, count) in BESIDE_THE_FEED {
            let (payments, concurrency) = if kind.creates() { ((fed, payments), SINGLES) } else { ((0, 0), QUERIES) };
            workloads.push(Self::new(kind, concurrency, payments, 1, Some(SECOND * pace / (rate * count)))?);
        }
        Ok(workloads)
    }

    fn new(kind: RequestKind, concurrency: u64, payments: (u64, u64), batch: u64, period: Option<u64>) -> Result<Self> {
        let (latency, next) = (Latency::new()?, AtomicU64::new(0));
        Ok(Self { kind, concurrency, payments, batch, period, latency, next })
    }

    /// Returns the next request, or nothing if all payments have theirs. Queries never end by themselves.
    pub(crate) fn next(&self) -> Option<Task> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let from = self.payments.0 + number * self.batch;
        if self.kind.creates() && from >= self.payments.1 {
            return None;
        }
        let due = self.period.map(|period| Duration::from_nanos(number * period));
        Some(Task { number, payments: (from, self.payments.1.min(from + self.batch)), due })
    }
}

impl Task {
    /// Waits until the request is due, and returns the time from which its latency counts. With a rate that is the
    /// time at which it was due: a request that is late because others were slow has waited too.
    pub(crate) async fn wait(&self, start: Instant) -> Instant {
        let Some(due) = self.due else { return Instant::now() };
        tokio::time::sleep_until((start + due).into()).await;
        start + due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workloads(change: impl FnOnce(&mut Settings)) -> Vec<Workload> {
        let mut settings = Settings::new(1_030, "Europe/London".parse().unwrap());
        change(&mut settings);
        Workload::parse(&settings).unwrap()
    }

    fn payments(workload: &Workload) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| workload.next()).map(|task| task.payments).collect()
    }

    #[test]
    fn every_payment_is_in_one_request() {
        let [feed] = workloads(|_| {}).try_into().unwrap();
        let fed = payments(&feed);
        assert_eq!((fed.len(), fed[0], fed[10]), (11, (0, 100), (1_000, 1_030)));
        let [single] = workloads(|settings| settings.single = true).try_into().unwrap();
        assert_eq!((single.kind, payments(&single).len()), (RequestKind::Create, 1_030));
    }

    #[test]
    fn a_rate_spreads_requests() {
        let [feed] = workloads(|settings| settings.rate = Some(200)).try_into().unwrap();
        let due: Vec<Duration> = (0..3).filter_map(|_| feed.next()?.due).collect();
        assert_eq!(due, [0, 500, 1_000].map(Duration::from_millis));
    }

    #[test]
    fn a_mixed_load_keeps_its_proportions() {
        let workloads = workloads(|settings| (settings.payments, settings.mixed) = (5_800, true));
        let created: Vec<_> = workloads.iter().filter(|workload| workload.kind.creates()).map(payments).collect();
        assert_eq!(created[0].last(), Some(&(5_500, 5_560)));
        assert_eq!((created[1].first(), created[1].len()), (Some(&(5_560, 5_561)), 240));
        // 5,560 payments of the feed take ten seconds, and so do 10 queries for counts.
        let counts = workloads.iter().find(|workload| workload.kind == RequestKind::Counts).unwrap();
        let due: Vec<Duration> = (0..11).filter_map(|_| counts.next()?.due).collect();
        assert_eq!(due[10], Duration::from_secs(10));
    }
}
