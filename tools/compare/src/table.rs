//! The results of a run, as a table and as JSON.

use std::time::Duration;

use serde::Serialize;

use crate::pair::Pair;
use crate::round::{self, Round};

/// The results of a pair. Ratios are in thousandths, times in nanoseconds per payment or page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    pair: &'static str,
    sides: [&'static str; 2],
    rounds: usize,
    /// The ratio of throughputs: the first quartile, the median, the third quartile.
    ratio: [u64; 3],
    at_least: Option<u64>,
    /// The medians of the elapsed times.
    nanos: [u64; 2],
    /// The processor times, over all rounds.
    processor_nanos: [u64; 2],
    processor_ratio: u64,
}

impl Row {
    /// Returns the results of these rounds. In each, both sides worked on `size` payments twice.
    pub fn of(pair: Pair, size: u64, rounds: &[Round]) -> Self {
        let each = |nanos: u128| u64::try_from(nanos / u128::from(2 * size)).unwrap_or(u64::MAX);
        let median = |side: usize| {
            let mut all: Vec<u64> = rounds.iter().map(|round| each(round.took[side].as_nanos())).collect();
            quartiles(&mut all)[1]
        };
        let processor = [0, 1].map(|side| rounds.iter().map(|round| round.processor[side]).sum::<Duration>());
        let (properties, count) = (pair.properties(), u128::try_from(rounds.len()).unwrap_or(1).max(1));
        Self {
            pair: properties.name,
            sides: properties.sides,
            rounds: rounds.len(),
            ratio: quartiles(&mut rounds.iter().map(Round::ratio).collect::<Vec<_>>()),
            at_least: properties.at_least,
            nanos: [median(0), median(1)],
            processor_nanos: processor.map(|time| each(time.as_nanos() / count)),
            processor_ratio: round::thousandths(processor),
        }
    }

    fn line(&self) -> String {
        let [low, median, high] = self.ratio.map(decimal);
        let at_least = self.at_least.map_or_else(|| "–".to_owned(), decimal);
        let [ours, theirs] = self.sides;
        let [took, took_theirs] = self.nanos.map(micros);
        let [processor, processor_theirs] = self.processor_nanos.map(micros);
        format!(
            "| {ours} | {theirs} | {took} | {took_theirs} | **{median}** ({low} to {high}) | {at_least} | {processor} | {processor_theirs} | {} |",
            self.rounds
        )
    }
}

/// Returns the table of `docs/performance.md`.
pub fn table(rows: &[Row]) -> String {
    let mut lines = vec![
        "| a function | beside | µs each | µs each, beside | throughput, beside | at least | µs of processor | beside | rounds |".to_owned(),
        "|---|---|---|---|---|---|---|---|---|".to_owned(),
    ];
    lines.extend(rows.iter().map(Row::line));
    lines.join("\n")
}

/// Returns the first quartile, the median and the third quartile.
fn quartiles(all: &mut [u64]) -> [u64; 3] {
    all.sort_unstable();
    [1, 2, 3].map(|quarter| all.get(all.len() * quarter / 4).copied().unwrap_or(0))
}

fn decimal(thousandths: u64) -> String {
    format!("{}.{:02}", thousandths / 1_000, thousandths % 1_000 / 10)
}

fn micros(nanos: u64) -> String {
    format!("{}", nanos / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_the_median_of_the_rounds_ratios() {
        let round = |ours, theirs| {
            let took = [Duration::from_millis(ours), Duration::from_millis(theirs)];
            Round { took, processor: took }
        };
        let rounds = [round(200, 180), round(100, 90), round(400, 396), round(100, 80), round(100, 70)];
        let row = Row::of(Pair::Ingest, 50, &rounds);
        assert_eq!(row.ratio, [800, 900, 900]);
        assert_eq!(row.nanos, [1_000_000, 900_000]);
        let line = "| a request per payment | its two PutItems | 1000 | 900 | **0.90** (0.80 to 0.90) | 0.85 | 1800 | 1632 | 5 |";
        assert_eq!(row.line(), line);
    }
}
