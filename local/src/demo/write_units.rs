//! Write units by phase, and decimals of whole numbers.

use serde::Serialize;
use serde_json::Number;

use payments_http::HttpFunction;

use crate::function::Function;
use crate::recorder::{Recorder, write_units};

/// The budget: the write units of one payment of 8 KB, by phase.
pub(super) const BUDGET: [(&str, u64); 5] =
    [("insert", 10), ("pending", 3), ("settled", 5), ("reported", 2), ("archive", 6)];

/// The recorders of the functions that write. DynamoDB does not report the units of a failed condition.
#[derive(Debug)]
pub(super) struct Recorders {
    pub(super) insert: Recorder,
    pub(super) pending: Recorder,
    pub(super) settled: Recorder,
    pub(super) reported: Recorder,
    pub(super) archive: Recorder,
    pub(super) counters: Recorder,
}

/// Write units by phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct WriteUnits {
    /// Creating payments.
    pub insert: u64,
    /// Claiming them.
    pub pending: u64,
    /// Settling them.
    pub settled: u64,
    /// Reporting them.
    pub reported: u64,
    /// Archiving them.
    pub archive: u64,
    /// Keeping the counters, which all payments share.
    pub counters: u64,
}

impl Recorders {
    pub(super) fn new() -> Self {
        Self {
            insert: Recorder::new(),
            pending: Recorder::new(),
            settled: Recorder::new(),
            reported: Recorder::new(),
            archive: Recorder::new(),
            counters: Recorder::new(),
        }
    }

    /// Returns the recorder of a function, if it writes payments.
    pub(super) fn of(&self, function: Function) -> Option<&Recorder> {
        match function {
            Function::Http(HttpFunction::Ingest) => Some(&self.insert),
            Function::DailyDueSweeper => Some(&self.pending),
            Function::Settle => Some(&self.settled),
            Function::Report => Some(&self.reported),
            Function::Archive => Some(&self.archive),
            Function::StreamAggregator => Some(&self.counters),
            _ => None,
        }
    }

    /// Returns the write units since the last time. Also clears the list of operations, which would grow.
    pub(super) fn take(&self) -> WriteUnits {
        let used = |recorder: &Recorder| {
            drop(recorder.take_operations());
            write_units(&recorder.take_capacity_use())
        };
        WriteUnits {
            insert: used(&self.insert),
            pending: used(&self.pending),
            settled: used(&self.settled),
            reported: used(&self.reported),
            archive: used(&self.archive),
            counters: used(&self.counters),
        }
    }
}

impl WriteUnits {
    /// Returns them by phase, in the order of [`BUDGET`].
    pub(super) fn phases(&self) -> [u64; 5] {
        [self.insert, self.pending, self.settled, self.reported, self.archive]
    }

    /// Returns their sum without the counters.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.phases().into_iter().sum()
    }
}

impl std::ops::AddAssign for WriteUnits {
    fn add_assign(&mut self, other: Self) {
        self.insert += other.insert;
        self.pending += other.pending;
        self.settled += other.settled;
        self.reported += other.reported;
        self.archive += other.archive;
        self.counters += other.counters;
    }
}

/// Returns the units of each of `payments`, in hundredths, rounded to the nearest.
pub(super) fn hundredths_each(units: u64, payments: u64) -> u64 {
    (units * 100 + payments / 2).checked_div(payments).unwrap_or(0)
}

/// Formats a number of hundredths: `4.98`.
pub(super) fn decimal(hundredths: u64) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Returns a number of hundredths for JSON: `3` or `4.98`.
pub(super) fn number(hundredths: u64) -> Number {
    if hundredths.is_multiple_of(100) {
        return Number::from(hundredths / 100);
    }
    decimal(hundredths).parse().unwrap_or_else(|_| Number::from(hundredths / 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        for (units, payments, text, json) in [
            (30_000, 10_000, "3.00", "3"),
            (49_802, 10_000, "4.98", "4.98"),
            (2, 3, "0.67", "0.67"),
            (11, 10, "1.10", "1.1"),
            (5, 0, "0.00", "0"),
        ] {
            let each = hundredths_each(units, payments);
            assert_eq!((decimal(each).as_str(), number(each).to_string().as_str()), (text, json));
        }
    }
}
