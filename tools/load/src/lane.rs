//! The lanes of a load: what is asked for over and over, how often, and how many of it at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::meter::Latency;
use crate::settings::{SINGLES, Settings};

/// The feed's pace: a million payments within half an hour.
pub const FEED_PER_SECOND: u32 = 556;

/// What comes while the feed brings [`FEED_PER_SECOND`] payments. Single creates are a million in twelve
/// hours; how often the bank is asked is our guess: an account looks for each create or two, consumers
/// read their shards, a screen shows the counts.
const BESIDE_THE_FEED: [(Kind, u64); 5] =
    [(Kind::Create, 24), (Kind::List, 12), (Kind::ByDate, 2), (Kind::Counts, 1), (Kind::LookUp, 6)];

/// How many questions of one kind are under way at once.
const ASKERS: u64 = 4;

const SECOND: u64 = 1_000_000_000;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Payments are put in, many with one request.
    Feed,
    /// Payments are put in one by one.
    Create,
    /// An account's payments.
    List,
    /// A date's payments, of one shard.
    ByDate,
    /// A date's numbers.
    Counts,
    /// The payment of a transaction id.
    LookUp,
}

impl Kind {
    /// Its name in the summary.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Feed => "feed",
            Self::Create => "create",
            Self::List => "listByAccount",
            Self::ByDate => "listByDate",
            Self::Counts => "counts",
            Self::LookUp => "transaction",
        }
    }

    /// Whether it puts payments in.
    pub(crate) fn puts(self) -> bool {
        matches!(self, Self::Feed | Self::Create)
    }
}

/// A lane.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) kind: Kind,
    /// How many requests are under way at once.
    pub(crate) workers: u64,
    pub(crate) latency: Latency,
    /// The numbers of its payments: from, and up to.
    payments: (u64, u64),
    /// How many of them one request carries.
    batch: u64,
    /// How long after one request the next is due, in nanoseconds.
    every: Option<u64>,
    next: AtomicU64,
}

/// One request of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    /// Its number on its lane.
    pub(crate) number: u64,
    /// The numbers of its payments: from, and up to.
    pub(crate) payments: (u64, u64),
    /// How long after the beginning it is due, if there is a pace.
    pub(crate) due: Option<Duration>,
}

impl Lane {
    /// The lanes of a load.
    pub(crate) fn of(settings: &Settings) -> Result<Vec<Self>> {
        let Settings { payments, batch, concurrency, rate, .. } = *settings;
        let feed = if batch == 1 { Kind::Create } else { Kind::Feed };
        if !settings.mixed {
            let every = rate.map(|rate| batch * SECOND / u64::from(rate));
            return Ok(vec![Self::new(feed, concurrency, (0, payments), batch, every)?]);
        }
        let rate = u64::from(rate.unwrap_or(FEED_PER_SECOND));
        let pace = u64::from(FEED_PER_SECOND);
        let creates = BESIDE_THE_FEED.iter().find(|(kind, _)| *kind == Kind::Create).map_or(0, |(_, count)| *count);
        let fed = payments * pace / (pace + creates);
        let mut lanes = vec![Self::new(feed, concurrency, (0, fed), batch, Some(batch * SECOND / rate))?];
        for (kind, count) in BESIDE_THE_FEED {
            let (payments, workers) = if kind.puts() { ((fed, payments), SINGLES) } else { ((0, 0), ASKERS) };
            lanes.push(Self::new(kind, workers, payments, 1, Some(SECOND * pace / (rate * count)))?);
        }
        Ok(lanes)
    }

    fn new(kind: Kind, workers: u64, payments: (u64, u64), batch: u64, every: Option<u64>) -> Result<Self> {
        Ok(Self { kind, workers, payments, batch, every, latency: Latency::new()?, next: AtomicU64::new(0) })
    }

    /// The next request; none once all payments are put in. Questions never end by themselves.
    pub(crate) fn next(&self) -> Option<Job> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let from = self.payments.0 + number * self.batch;
        if self.kind.puts() && from >= self.payments.1 {
            return None;
        }
        let due = self.every.map(|every| Duration::from_nanos(number * every));
        Some(Job { number, payments: (from, self.payments.1.min(from + self.batch)), due })
    }
}

impl Job {
    /// Waits until it is due, and says from when on it is timed. With a pace that is when it was due:
    /// whoever comes late because the bank was slow has waited, too.
    pub(crate) async fn wait(&self, begins: Instant) -> Instant {
        let Some(due) = self.due else { return Instant::now() };
        let due = begins + due;
        tokio::time::sleep_until(due.into()).await;
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(change: impl FnOnce(&mut Settings)) -> Vec<Lane> {
        let mut settings = Settings::of(1_030, "Europe/London".parse().unwrap());
        change(&mut settings);
        Lane::of(&settings).unwrap()
    }

    fn jobs(lane: &Lane) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| lane.next()).map(|job| job.payments).collect()
    }

    #[test]
    fn every_payment_is_in_one_request() {
        let [feed] = lanes(|_| {}).try_into().unwrap();
        let fed = jobs(&feed);
        assert_eq!((fed.len(), fed[0], fed[10]), (11, (0, 100), (1_000, 1_030)));
        let [single] = lanes(|settings| settings.batch = 1).try_into().unwrap();
        assert_eq!((single.kind, jobs(&single).len()), (Kind::Create, 1_030));
    }

    #[test]
    fn a_rate_spreads_requests() {
        let [feed] = lanes(|settings| settings.rate = Some(200)).try_into().unwrap();
        let due: Vec<Duration> = (0..3).filter_map(|_| feed.next()?.due).collect();
        assert_eq!(due, [0, 500, 1_000].map(Duration::from_millis));
    }

    #[test]
    fn the_day_is_mixed_in_the_feed_s_proportion() {
        let lanes = lanes(|settings| (settings.payments, settings.mixed) = (5_800, true));
        let put: Vec<_> = lanes.iter().filter(|lane| lane.kind.puts()).map(jobs).collect();
        assert_eq!(put[0].last(), Some(&(5_500, 5_560)));
        assert_eq!((put[1].first(), put[1].len()), (Some(&(5_560, 5_561)), 240));
        // 5,560 of the feed take ten seconds; within them come 10 questions for counts.
        let counts = lanes.iter().find(|lane| lane.kind == Kind::Counts).unwrap();
        let due: Vec<Duration> = (0..11).filter_map(|_| counts.next()?.due).collect();
        assert_eq!(due[10], Duration::from_secs(10));
    }
}
