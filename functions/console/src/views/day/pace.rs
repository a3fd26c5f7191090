//! The time at which the rest of a day is settled, as far as its pace says anything about that.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use payments_model::{DayCounts, Status, UtcSecond};

use crate::views::day::chart::{claimed, seconds, settled};

/// The time whose pace counts, and a shorter one, which must have about the same pace.
const LONG: i64 = 15 * 60;
const SHORT: i64 = 5 * 60;

/// Samples may be this much older than asked: one is put each five minutes, and one may be missing.
const SLACK: i64 = 10 * 60;

/// The fewest settlements of the longer time. Fewer are chance.
const FEWEST: i64 = 30;

/// The longest estimate. A bank's day has changed its pace by then.
const LONGEST: i64 = 12 * 3_600;

/// The grid of estimates, in seconds.
const ROUNDED: i64 = 300;

/// An estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) at: UtcSecond,
    /// Whether payments that are not claimed yet are part of the rest. Without claims, nobody knows when they are due.
    pub(super) with_scheduled: bool,
}

/// Returns the end of the rest at the pace of the last 15 minutes; `None` if that says nothing: it is too slow, not even, or not
/// measured.
pub(super) fn end(now: UtcSecond, counts: &DayCounts, samples: &BTreeMap<UtcSecond, DayCounts>) -> Option<End> {
    let before = |ago: i64| {
        let (at, sample) = samples.range(..=now.saturating_add(TimeDelta::seconds(-ago))).next_back()?;
        let elapsed = seconds(*at, now);
        (elapsed <= ago + SLACK)
            .then(|| (elapsed, settled(counts) - settled(sample), claimed(counts) - claimed(sample)))
    };
    let (long, settled_in_long, claimed_in_long) = before(LONG)?;
    let (short, settled_in_short, _) = before(SHORT)?;
    if settled_in_long < FEWEST {
        return None;
    }
    let (long_pace, short_pace) =
        (i128::from(settled_in_long) * i128::from(short), i128::from(settled_in_short) * i128::from(long));
    if short_pace * 2 < long_pace || short_pace > long_pace * 2 {
        return None;
    }
    let with_scheduled = claimed_in_long > 0 && counts.count(Status::Scheduled) > 0;
    let scheduled = if with_scheduled { counts.count(Status::Scheduled) } else { 0 };
    let rest = counts.count(Status::Pending) + scheduled;
    let left = i64::try_from(i128::from(rest) * i128::from(long) / i128::from(settled_in_long)).ok()?;
    // The last ones may be stuck, so the last minute is not promised.
    if !(60..=LONGEST).contains(&left) {
        return None;
    }
    let exact = now.saturating_add(TimeDelta::seconds(left));
    let past = exact.as_chrono().timestamp().rem_euclid(ROUNDED);
    Some(End { at: exact.saturating_add(TimeDelta::seconds((ROUNDED - past) % ROUNDED)), with_scheduled })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts([scheduled, pending, processed]: [i64; 3]) -> DayCounts {
        let mut counts = DayCounts::default();
        counts.shift(Status::Scheduled, scheduled);
        counts.shift(Status::Pending, pending);
        counts.shift(Status::Processed, processed);
        counts
    }

    fn at(time: &str) -> UtcSecond {
        format!("2026-11-26T{time}Z").parse().unwrap()
    }

    /// The estimate at 03:10:24.
    fn end_of(now: [i64; 3], samples: &[(&str, [i64; 3])]) -> Option<(String, bool)> {
        let samples = samples.iter().map(|(time, of)| (at(time), counts(*of))).collect();
        let end = end(at("03:10:24"), &counts(now), &samples)?;
        Some((end.at.as_chrono().format("%H:%M:%S").to_string(), end.with_scheduled))
    }

    #[test]
    fn the_rest_ends_at_the_pace_of_fifteen_minutes() {
        let paced = [("02:55:00", [1_212, 453_000, 547_000]), ("03:05:00", [1_212, 405_000, 595_000])];
        assert_eq!(end_of([1_212, 380_000, 620_000], &paced), Some(("04:35:00".to_owned(), false)));
        // While claims go on, the scheduled ones are part of the rest.
        let claiming = [("02:55:00", [300_000, 90_000, 10_000]), ("03:05:00", [200_000, 110_000, 90_000])];
        assert_eq!(end_of([150_000, 120_000, 130_000], &claiming), Some(("03:50:00".to_owned(), true)));
        let last = [("02:55:00", [10, 900, 0]), ("03:05:00", [0, 310, 600])];
        assert_eq!(end_of([0, 100, 810], &last), Some(("03:15:00".to_owned(), false)));
    }

    #[test]
    fn a_pace_that_says_nothing_has_no_end() {
        for (why, now, samples) in [
            ("no samples", [0, 500, 500], &[][..]),
            ("an old sample", [0, 500, 500], &[("02:40:00", [0, 1_000, 0]), ("03:05:00", [0, 700, 300])]),
            ("nothing is settled", [0, 500, 500], &[("02:55:00", [0, 500, 500]), ("03:05:00", [0, 500, 500])]),
            ("too few", [0, 500, 529], &[("02:55:00", [0, 529, 500]), ("03:05:00", [0, 510, 519])]),
            ("it has stopped", [0, 500, 500], &[("02:55:00", [0, 1_000, 0]), ("03:05:00", [0, 510, 490])]),
            ("it has just begun", [0, 500, 500], &[("02:55:00", [0, 1_000, 0]), ("03:05:00", [0, 1_000, 0])]),
            (
                "more than twelve hours",
                [0, 99_000, 1_000],
                &[("02:55:00", [0, 100_000, 0]), ("03:05:00", [0, 99_333, 667])],
            ),
            ("nothing is left", [0, 0, 1_000], &[("02:55:00", [0, 1_000, 0]), ("03:05:00", [0, 333, 667])]),
            ("two are stuck", [0, 2, 998], &[("02:55:00", [0, 1_000, 0]), ("03:05:00", [0, 333, 667])]),
            (
                "a repair lowered the counters",
                [0, 500, 500],
                &[("02:55:00", [0, 400, 600]), ("03:05:00", [0, 400, 600])],
            ),
        ] {
            assert_eq!(end_of(now, samples), None, "{why}");
        }
    }
}
