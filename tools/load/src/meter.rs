//! What is measured while the load runs: how long requests take, and how the rate holds.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use hdrhistogram::Histogram;

/// The longest that is told apart, in microseconds: an hour.
const LONGEST: u64 = 3_600_000_000;

/// How many digits of a latency are kept.
const DIGITS: u8 = 3;

/// How long requests of one kind took.
#[derive(Debug)]
pub(crate) struct Latency(Mutex<Histogram<u64>>);

/// What is told of latencies, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// How many requests there were.
    pub requests: u64,
    /// Half of them took no longer.
    pub p50: u64,
    /// Nine in ten.
    pub p90: u64,
    /// All but one in a hundred.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

impl Latency {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(Mutex::new(Histogram::new_with_bounds(1, LONGEST, DIGITS)?)))
    }

    pub(crate) fn enter(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(LONGEST);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).saturating_record(micros.max(1));
    }

    pub(crate) fn quantiles(&self) -> Quantiles {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.is_empty() {
            return Quantiles::default();
        }
        Quantiles {
            requests: seen.len(),
            p50: seen.value_at_quantile(0.5),
            p90: seen.value_at_quantile(0.9),
            p99: seen.value_at_quantile(0.99),
            max: seen.max(),
        }
    }
}

/// How payments go in over time.
#[derive(Debug)]
pub(crate) struct Course {
    begins: Instant,
    expected: u64,
    marks: Mutex<Marks>,
}

/// How many payments were answered by when, at the places that matter.
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

impl Course {
    pub(crate) fn of(expected: u64) -> Self {
        Self { begins: Instant::now(), expected, marks: Mutex::default() }
    }

    pub(crate) fn begins(&self) -> Instant {
        self.begins
    }

    /// Enters payments that were answered.
    pub(crate) fn enter(&self, payments: u64) {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        marks.enter(payments, self.begins.elapsed(), self.expected);
    }

    pub(crate) fn marks(&self) -> Marks {
        *self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Marks {
    fn enter(&mut self, payments: u64, after: Duration, expected: u64) {
        let now = Mark { payments: self.latest.payments + payments, after };
        self.latest = now;
        if now.payments * 10 >= expected {
            self.first_tenth.get_or_insert(now);
        }
        if now.payments * 10 >= expected * 9 {
            self.before_last_tenth.get_or_insert(now);
        }
    }

    /// The rate of the first tenth of the payments, if it can be told.
    pub(crate) fn first_tenth(&self) -> Option<u64> {
        Mark::default().rate_to(self.first_tenth?)
    }

    /// The rate of the last tenth.
    pub(crate) fn last_tenth(&self) -> Option<u64> {
        self.before_last_tenth?.rate_to(self.latest)
    }

    /// The rate of them all.
    pub(crate) fn rate(&self) -> Option<u64> {
        Mark::default().rate_to(self.latest)
    }
}

impl Mark {
    /// Payments a second between two marks, if there are both.
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
    fn the_first_and_the_last_tenth_have_rates_of_their_own() {
        let mut marks = Marks::default();
        // A thousand payments: the first hundred take one second, the last hundred four.
        for (payments, seconds) in [(50, 0), (50, 1), (400, 2), (400, 3), (50, 5), (50, 7)] {
            marks.enter(payments, Duration::from_secs(seconds), 1_000);
        }
        assert_eq!((marks.first_tenth(), marks.last_tenth(), marks.rate()), (Some(100), Some(25), Some(142)));
    }

    #[test]
    fn where_there_is_no_tenth_there_is_no_rate() {
        let mut marks = Marks::default();
        assert_eq!((marks.first_tenth(), marks.last_tenth(), marks.rate()), (None, None, None));
        marks.enter(100, Duration::from_secs(1), 100);
        assert_eq!((marks.first_tenth(), marks.last_tenth(), marks.rate()), (Some(100), None, Some(100)));
    }

    #[test]
    fn latencies_are_told_by_rank() -> Result<()> {
        let latency = Latency::new()?;
        assert_eq!(latency.quantiles(), Quantiles::default());
        (1..=100).for_each(|millis| latency.enter(Duration::from_millis(millis)));
        let Quantiles { requests, p50, p90, p99, max } = latency.quantiles();
        assert_eq!(requests, 100);
        for (told, millis) in [(p50, 50), (p90, 90), (p99, 99), (max, 100)] {
            assert!(told.abs_diff(millis * 1_000) <= millis, "{told} for {millis} ms");
        }
        Ok(())
    }
}
