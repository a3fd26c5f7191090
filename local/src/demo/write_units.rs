//! Write units by phase, and decimals of whole numbers.

use payments_http::HttpFunction;
use payments_machine::Stack;
use payments_machine::layers::record::{Recorder, is_of_runs, write_units};
use serde_json::Number;

/// The phases that write: the name, the function, and the budget in write units of one payment of 8 KB. All payments share
/// the counters, which have no budget and come last.
pub(super) const PHASES: [(&str, &str, Option<u64>); 5] = [
    ("insert", HttpFunction::Ingest.name(), Some(10)),
    ("pending", "daily-due-sweeper", Some(3)),
    ("settled", "settle", Some(7)),
    ("reported", "report", Some(2)),
    ("counters", "stream-aggregator", None),
];

/// The recorders of the phases. DynamoDB does not report the units of a failed condition.
#[derive(Debug)]
pub(super) struct Recorders([Recorder; PHASES.len()]);

/// Write units by phase, in the order of [`PHASES`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WriteUnits(pub(super) [u64; PHASES.len()]);

impl Recorders {
    pub(super) fn new(stack: &Stack) -> Self {
        Self(PHASES.map(|_| stack.recorder()))
    }

    /// Returns the recorder of a function, if it has a phase.
    pub(super) fn for_function(&self, function: &'static str) -> Option<&Recorder> {
        PHASES.iter().zip(&self.0).find(|((_, known, _), _)| *known == function).map(|(_, recorder)| recorder)
    }

    /// Returns the write units since the last time, without those of the outcomes of runs, which are not a payment's. Also
    /// clears the list of operations, which would grow.
    pub(super) fn take(&self) -> WriteUnits {
        WriteUnits(self.0.each_ref().map(|recorder| {
            drop(recorder.take_operations());
            let mut used = recorder.take_capacity_use();
            used.retain(|(_, place), _| !is_of_runs(place));
            write_units(&used)
        }))
    }
}

impl WriteUnits {
    /// Returns their sum without the counters.
    pub(super) fn total(&self) -> u64 {
        self.0.iter().sum::<u64>() - self.counters()
    }

    /// Returns those of `ingest`.
    pub(super) fn created(&self) -> u64 {
        self.0[0]
    }

    /// Returns those of the counters.
    pub(super) fn counters(&self) -> u64 {
        self.0[PHASES.len() - 1]
    }
}

impl std::ops::AddAssign for WriteUnits {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, units)| *sum += units);
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
