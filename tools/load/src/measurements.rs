//! Measurements of a load: latencies of requests, and payments a second over time.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use hdrhistogram::Histogram;

/// The longest latency of the histogram, in microseconds: an hour.
const LONGEST: u64 = 3_600_000_000;

/// The significant digits of a latency.
const DIGITS: u8 = 3;

/// The latencies of one kind of request.
#[derive(Debug)]
pub(crate) struct Latency(Mutex<Histogram<u64>>);

/// The quantiles of latencies, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// The number of requests.
    pub requests: u64,
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

impl Latency {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(Mutex::new(Histogram::new_with_bounds(1, LONGEST, DIGITS)?)))
    }

    pub(crate) fn record(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(LONGEST);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).saturating_record(micros.max(1));
    }

    pub(crate) fn quantiles(&self) -> Quantiles {
        let histogram = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if histogram.is_empty() {
            return Quantiles::default();
        }
        Quantiles {
            requests: histogram.len(),
            p50: histogram.value_at_quantile(0.5),
            p90: histogram.value_at_quantile(0.9),
            p99: histogram.value_at_quantile(0.99),
            max: histogram.max(),
        }
    }
}

/// Payments over time.
#[derive(Debug)]
pub(crate) struct Throughput {
    start: Instant,
    expected: u64,
    marks: Mutex<Marks>,
}

/// The numbers of payments with a reply, and their times: after the first tenth, before the last tenth, and so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    first_tenth: Option<Mark>,
    before_last_tenth: Option<Mark>,
    pub(crate) latest: Mark,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) payments: u64,
    pub(crate) after: Duration,
}

impl Throughput {
    pub(crate) fn new(expected: u64) -> Self {
        Self { start: Instant::now(), expected, marks: Mutex::default() }
    }

    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// Adds payments that have a reply.
    pub(crate) fn add(&self, payments: u64) {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        marks.add(payments, self.start.elapsed(), self.expected);
    }

    pub(crate) fn marks(&self) -> Marks {
        *self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Marks {
    fn add(&mut self, payments: u64, after: Duration, expected: u64) {
        let now = Mark { payments: self.latest.payments + payments, after };
        self.latest = now;
        if now.payments * 10 >= expected {
            self.first_tenth.get_or_insert(now);
        }
        if now.payments * 10 >= expected * 9 {
            self.before_last_tenth.get_or_insert(now);
        }
    }

    /// Returns the rate of the first tenth of the payments, if they have replies.
    pub(crate) fn first_tenth(&self) -> Option<u64> {
        Mark::default().rate_to(self.first_tenth?)
    }

    /// Returns the rate of the last tenth.
    pub(crate) fn last_tenth(&self) -> Option<u64> {
        self.before_last_tenth?.rate_to(self.latest)
    }

    /// Returns the rate of all payments so far.
    pub(crate) fn rate(&self) -> Option<u64> {
        Mark::default().rate_to(self.latest)
    }
}

impl Mark {
    /// Returns the payments a second between two marks, if there are payments and time between them.
    fn rate_to(self, later: Self) -> Option<u64> {
        let (payments, took) = (later.payments - self.payments, later.after.saturating_sub(self.after));
        let micros = u64::try_from(took.as_micros()).ok()?;
        if payments == 0 { None } else { (payments * 1_000_000).checked_div(micros) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_tenth_have_their_own_rates() {
        let mut marks = Marks::default();
        // A thousand payments: the first hundred take one second, the last hundred four.
        for (payments, seconds) in [(50, 0), (50, 1), (400, 2), (400, 3), (50, 5), (50, 7)] {
            marks.add(payments, Duration::from_secs(seconds), 1_000);
        }
        assert_eq!((marks.first_tenth(), marks.last_tenth(), marks.rate()), (Some(100), Some(25), Some(142)));
    }

    #[test]
    fn a_tenth_that_is_missing_has_no_rate() {
        let mut marks = Marks::default();
        assert_eq!((marks.first_tenth(), marks.last_tenth(), marks.rate()), (None, None, None));
        marks.add(100, Duration::from_secs(1), 100);
        assert_eq!((marks.first_tenth(), marks.last_tenth(), marks.rate()), (Some(100), None, Some(100)));
    }

    #[test]
    fn quantiles_are_those_of_the_recorded_latencies() -> Result<()> {
        let latency = Latency::new()?;
        assert_eq!(latency.quantiles(), Quantiles::default());
        (1..=100).for_each(|millis| latency.record(Duration::from_millis(millis)));
        let Quantiles { requests, p50, p90, p99, max } = latency.quantiles();
        assert_eq!(requests, 100);
        for (told, millis) in [(p50, 50), (p90, 90), (p99, 99), (max, 100)] {
            assert!(told.abs_diff(millis * 1_000) <= millis, "{told} for {millis} ms");
        }
        Ok(())
    }
}
