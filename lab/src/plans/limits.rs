//! The limits of due dates in a month: those that are deployed, one after the other, and the releases beyond them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use payments_machine::layers::random::{Seed, happens};

/// Shorter months have no limits.
const LEAST_DAYS: u32 = 2;

/// In how many of a thousand months there are limits.
const PER_THOUSAND: u16 = 500;

/// The number of limits. The last one holds no date.
const LEVELS: usize = 5;

/// The time for which claims by an earlier deployment can still arrive.
const LONGEST_SWEEP: TimeDelta = TimeDelta::minutes(6);

/// The currency whose sum has a limit.
pub(crate) const LIMITED: &str = "GBP";

/// The most claims of a due date: their number, and their sum in one currency, in minor units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Limit {
    pub(crate) payments: u64,
    pub(crate) sum: u64,
}

impl Limit {
    /// The limit of no month.
    const ALL: Self = Self { payments: 1_000_000, sum: 1_000_000_000_000 };

    /// The parameter's value.
    pub(crate) fn text(self) -> String {
        format!("payments={},{LIMITED}={}", self.payments, self.sum)
    }

    fn or(self, other: Self) -> Self {
        Self { payments: self.payments.max(other.payments), sum: self.sum.max(other.sum) }
    }
}

/// The limits of a month. Clones share their past.
#[derive(Debug, Clone)]
pub(crate) struct DayLimits {
    levels: Arc<[Limit]>,
    past: Arc<Mutex<Past>>,
}

/// The deployments and releases, in the order of time.
#[derive(Debug, Default)]
struct Past {
    deployed: Vec<(DateTime<Utc>, usize)>,
    released: Vec<(DateTime<Utc>, String, Limit)>,
}

impl DayLimits {
    /// Draws the limits of a month of so many days, each with so many payments, if it has any.
    pub(crate) fn draw(days: u32, payments: usize, seed: Seed) -> Option<Self> {
        let mut random = seed.source("limits of dates");
        let are_in = days >= LEAST_DAYS && happens(&mut random, PER_THOUSAND);
        let payments = u64::try_from(payments).unwrap_or(u64::MAX).max(4);
        // Amounts begin at 1,000 and are all different, and a third of them is in pounds.
        let sum = payments * (1_000 + payments * u64::from(days) / 2) / 3;
        let mut levels: Vec<Limit> = (1..LEVELS)
            .map(|_| Limit {
                payments: random.u64(payments / 4..payments + payments / 2),
                sum: random.u64(sum / 3..sum * 3),
            })
            .collect();
        levels.push(Limit::ALL);
        are_in.then(|| Self { levels: levels.into(), past: Arc::default() })
    }

    fn past(&self) -> MutexGuard<'_, Past> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All limits.
    pub(crate) fn levels(&self) -> &[Limit] {
        &self.levels
    }

    /// The place of the limit that is deployed now.
    pub(crate) fn deployed(&self) -> usize {
        self.past().deployed.last().map_or(0, |(_, place)| *place)
    }

    /// Deploys the limit at a place.
    pub(crate) fn deploy(&self, at: DateTime<Utc>, place: usize) {
        self.past().deployed.push((at, place));
    }

    /// Notes that a date is released up to a limit.
    pub(crate) fn release(&self, at: DateTime<Utc>, date: &str, up_to: Limit) {
        self.past().released.push((at, date.to_owned(), up_to));
    }

    /// The most claims of a date at an instant. A sweep that began before a deployment still has the limit before it.
    pub(crate) fn of_date(&self, date: &str, at: DateTime<Utc>) -> Limit {
        let past = self.past();
        let before = |from: &DateTime<Utc>| *from <= at;
        let begin = past.deployed.iter().rposition(|(from, _)| *from <= at - LONGEST_SWEEP);
        let deployed = past.deployed[begin.unwrap_or(0)..].iter().filter(|(from, _)| before(from));
        // The first limit was there from the beginning.
        let first = begin.is_none().then_some(0);
        let deployed = deployed.map(|(_, place)| *place).chain(first).map(|place| self.levels[place]);
        let released = past.released.iter().filter(|(from, of, _)| before(from) && of == date);
        deployed.chain(released.map(|(_, _, up_to)| *up_to)).fold(Limit::default(), Limit::or)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_796_000_400 + minute * 60, 0).unwrap()
    }

    #[test]
    fn a_limit_is_in_force_until_the_sweeps_of_its_deployment_are_over() {
        let limit = |payments, sum| Limit { payments, sum };
        let levels = [limit(9, 10), limit(5, 50), limit(7, 20)];
        let limits = DayLimits { levels: levels.into(), past: Arc::default() };
        assert_eq!(limits.of_date("2026-12-01", at(0)), levels[0]);
        limits.deploy(at(10), 1);
        limits.deploy(at(30), 2);
        limits.release(at(50), "2026-12-01", limit(8, 8));
        for (minute, want) in [
            (9, levels[0]),
            (10, limit(9, 50)),
            (15, limit(9, 50)),
            (16, levels[1]),
            (30, limit(7, 50)),
            (36, levels[2]),
            (50, limit(8, 20)),
        ] {
            assert_eq!(limits.of_date("2026-12-01", at(minute)), want, "{minute}");
        }
        assert_eq!(limits.of_date("2026-12-02", at(50)), levels[2]);
        assert_eq!(limits.deployed(), 2);
    }
}
